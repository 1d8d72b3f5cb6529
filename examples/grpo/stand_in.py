"""Stand-ins for TRL's trainer and its vLLM server, for a machine without GPUs. The reward server is the real one.

A model is one number: the mean length of what it writes. The trainer samples a group of completions, asks for their
rewards, and moves the model towards those that are better than the mean of the group, as GRPO does.
"""

import argparse
import random

import reward
import wire


def generate():
    model = {"length": 5.0}

    def answer(path, data):
        if path == "/generate/":
            lengths = [max(1, round(random.gauss(model["length"], 4))) for _ in range(data["n"])]
            return {"completions": ["x" * length for length in lengths]}
        if path == "/update/":
            model.update(data)
        return model

    wire.serve("generate", answer)
    print("vLLM stand-in ready", flush=True)
    wire.wait_until(lambda: False, patience_s=86400)


def trainer(steps, group):
    length = 5.0
    for step in range(1, steps + 1):
        completions = wire.call("generate", "/generate/", {"n": group})["completions"]
        rewards = reward.score(completions)
        mean = sum(rewards) / group
        spread = (sum((one - mean) ** 2 for one in rewards) / group) ** 0.5 or 1.0
        advantages = [(one - mean) / spread for one in rewards]
        length += sum(a * (len(text) - length) for a, text in zip(advantages, completions, strict=True)) / group
        wire.call("generate", "/update/", {"length": length})
        print(f"step {step}: mean reward {mean:.2f}, mean length {length:.1f}", flush=True)
    print("trainer done", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("role", choices=["trainer", "generate"])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--group", type=int, default=8)
    options = parser.parse_args()
    trainer(options.steps, options.group) if options.role == "trainer" else generate()


if __name__ == "__main__":
    main()
