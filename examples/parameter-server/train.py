"""Asynchronous gradient descent: fit y = 2 x - 1 on shards of the data. Standard library only.

python train.py server --workers 3   holds the weights, ends when all workers are done
python train.py worker               works on shard SYMPH_INDEX of SYMPH_REPLICAS
"""

import argparse
import os

import wire

DATA = [(number / 50 - 1, 2 * (number / 50 - 1) - 1) for number in range(101)]


def serve(options):
    weights, done = [0.0, 0.0], set()
    pushes = 0

    def answer(path, data):
        nonlocal pushes
        if path == "/push":
            pushes += 1
            for place, slope in enumerate(data["gradient"]):
                weights[place] -= options.rate * slope
        elif path == "/done":
            done.add(data["worker"])
        return weights

    wire.serve("parameters", answer)
    print("server ready", flush=True)
    wire.wait_until(lambda: len(done) >= options.workers)
    print(f"y = {weights[0]:.2f} x {weights[1]:+.2f} after {pushes} gradients", flush=True)


def work(options):
    index, count = int(os.environ["SYMPH_INDEX"]), int(os.environ["SYMPH_REPLICAS"])
    shard = DATA[index::count]
    weights = wire.call("parameters", "/pull")
    for step in range(1, options.steps + 1):
        errors = [weights[0] * x + weights[1] - y for x, y in shard]
        gradient = [
            2 * sum(error * x for error, (x, _) in zip(errors, shard, strict=True)) / len(shard),
            2 * sum(errors) / len(shard),
        ]
        weights = wire.call("parameters", "/push", {"gradient": gradient})
        if step % 25 == 0:
            loss = sum(error * error for error in errors) / len(shard)
            print(f"worker {index} of {count}, step {step}: loss {loss:.4f}", flush=True)
    wire.call("parameters", "/done", {"worker": index})


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("role", choices=["server", "worker"])
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--rate", type=float, default=0.1)
    options = parser.parse_args()
    serve(options) if options.role == "server" else work(options)


if __name__ == "__main__":
    main()
