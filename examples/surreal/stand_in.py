"""A stand-in for the programs of Surreal, so that its topology runs anywhere.

    python stand_in.py --binds ps-frontend,ps-backend --connects parameter-publish --steps 0

It listens on every service it binds and answers each line with its role, dials every service it connects to once
a second, and prints what it hears. It ends after `--steps` rounds (0: never). Addresses come from SYMPH_* alone.
"""

import argparse
import os
import socket
import socketserver
import threading
import time

ROLE = os.environ["SYMPHONY_ROLE"]


def address(service):
    prefix = "SYMPH_" + service.upper().replace("-", "_")
    return os.environ[prefix + "_HOST"], int(os.environ[prefix + "_PORT"])


class Answer(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            self.wfile.write(f"{ROLE} heard {line.decode().strip()}\n".encode())


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


def ask(service):
    """What the listener of `service` answers, or why it did not."""
    try:
        with socket.create_connection(address(service), timeout=5) as connection:
            connection.sendall(f"{ROLE}\n".encode())
            return connection.makefile(encoding="utf-8").readline().strip()
    except OSError as error:
        return f"no answer yet: {error}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binds", default="", help="services, separated by commas")
    parser.add_argument("--connects", default="", help="services, separated by commas")
    parser.add_argument("--steps", type=int, default=0)
    options = parser.parse_args()
    for service in filter(None, options.binds.split(",")):
        threading.Thread(target=Server(address(service), Answer).serve_forever, daemon=True).start()
        print(f"listening on {service}", flush=True)
    step = 0
    while options.steps == 0 or step < options.steps:
        step += 1
        for service in filter(None, options.connects.split(",")):
            print(f"step {step}: {service}: {ask(service)}", flush=True)
        time.sleep(1)
    print("done", flush=True)


if __name__ == "__main__":
    main()
