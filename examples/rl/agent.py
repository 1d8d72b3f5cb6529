"""An agent: asks the learner for parameters, acts, and sends transitions to the replay buffer until told to stop."""

import argparse
import os
import random
import socket
import time


def connect(service, patience_s=60):
    """A connection to `service`, which may still be starting."""
    prefix = "SYMPH_" + service.upper().replace("-", "_")
    address = os.environ[prefix + "_HOST"], int(os.environ[prefix + "_PORT"])
    deadline = time.monotonic() + patience_s
    while True:
        try:
            return socket.create_connection(address, timeout=10)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--env", default="half-cheetah")
    options = parser.parse_args()
    name = f"{os.environ['SYMPHONY_ROLE']}-{os.environ['SYMPH_INDEX']}"
    print(f"{name} starting in {options.env}", flush=True)
    steps = 0
    with connect("replay-server") as replay, connect("parameter-server") as parameters:
        answers = parameters.makefile(encoding="utf-8")
        while True:
            parameters.sendall(f"{name}\n".encode())
            version = answers.readline().strip()
            if version in ("stop", ""):
                break
            reward = random.random() + int(version) / 10
            replay.sendall(f"{name} {options.env} {reward:.4f}\n".encode())
            steps += 1
            time.sleep(0.05)
    print(f"{name} done after {steps} steps", flush=True)


if __name__ == "__main__":
    main()
