"""A learner that serves a replay buffer, its parameters and a status page, over plain sockets.

It waits for `--agents` agents, updates once per batch of transitions, publishes a version number as its
"parameters", and ends after `--updates` updates by telling every agent so. Addresses come from SYMPH_* alone.
"""

import argparse
import http.server
import os
import queue
import socketserver
import threading
import time


def address(service):
    prefix = "SYMPH_" + service.upper().replace("-", "_")
    return os.environ[prefix + "_HOST"], int(os.environ[prefix + "_PORT"])


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


def serve(service, handler):
    server = Server(address(service), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def wait_until(condition, patience_s=60):
    deadline = time.monotonic() + patience_s
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=20)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--agents", type=int, default=2, help="agents to wait for before the first update")
    options = parser.parse_args()
    transitions, version, agents = queue.Queue(), 0, set()

    class Replay(socketserver.StreamRequestHandler):
        def handle(self):
            for line in self.rfile:
                transitions.put(line.decode().split())

    class Parameters(socketserver.StreamRequestHandler):
        def handle(self):
            for line in self.rfile:
                agents.add(line.strip())
                done = version >= options.updates
                self.wfile.write(b"stop\n" if done else f"{version}\n".encode())
                if done:
                    agents.discard(line.strip())

    class Status(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(f"updates {version} of {options.updates}\n".encode())

        def log_message(self, *_):
            pass

    serve("parameter-server", Parameters)
    serve("tensorboard", Status)
    serve("replay-server", Replay)
    print("learner ready", flush=True)
    wait_until(lambda: len(agents) >= options.agents)
    while version < options.updates:
        batch = [transitions.get(timeout=120) for _ in range(options.batch)]
        version += 1
        reward = sum(float(item[2]) for item in batch) / len(batch)
        print(f"update {version}: mean reward {reward:.3f} from {len({item[0] for item in batch})} agents", flush=True)
    wait_until(lambda: not agents)
    print("learner done", flush=True)


if __name__ == "__main__":
    main()
