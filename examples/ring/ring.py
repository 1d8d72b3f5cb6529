"""One member of a ring of processes that pass messages over raw sockets.

    python ring.py --listen ring-0 --next ring-1 --rounds 50

Every member sends a greeting to the next one each `--pause` seconds and prints what it receives from the one
before. It ends when it has sent and received `--rounds` greetings (0: never). Addresses come from SYMPH_* alone.
"""

import argparse
import os
import socket
import threading
import time


def variable(service, part):
    return os.environ[f"SYMPH_{service.upper().replace('-', '_')}_{part}"]


def receive(server, rounds, finished):
    """Print greetings until `rounds` have come; a connection that says nothing is a readiness probe."""
    received = 0
    while True:
        connection, _ = server.accept()
        with connection, connection.makefile(encoding="utf-8") as lines:
            for line in lines:
                print(f"received {line.rstrip()}", flush=True)
                received += 1
                if received == rounds:
                    finished.set()
                    return


def connect(host, port, patience_s=60):
    """A connection to the next member, which may still be starting."""
    deadline = time.monotonic() + patience_s
    while True:
        try:
            return socket.create_connection((host, port), timeout=5)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--listen", required=True, help="the service this member binds")
    parser.add_argument("--next", required=True, help="the service of the next member")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--pause", type=float, default=0.1)
    options = parser.parse_args()

    finished = threading.Event()
    server = socket.create_server((variable(options.listen, "HOST"), int(variable(options.listen, "PORT"))))
    threading.Thread(target=receive, args=(server, options.rounds, finished), daemon=True).start()

    name = options.listen.replace("ring-", "hello")
    with connect(variable(options.next, "HOST"), int(variable(options.next, "PORT"))) as following:
        count = 0
        while options.rounds == 0 or count < options.rounds:
            following.sendall(f"{name} {count}\n".encode())
            count += 1
            time.sleep(options.pause)
        finished.wait()
    print(f"done: {count} sent, {options.rounds} received", flush=True)


if __name__ == "__main__":
    main()
