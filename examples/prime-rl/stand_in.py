"""Stand-ins for the three programs of PRIME-RL, for a machine without GPUs. The task is theirs: reverse a text.

The orchestrator asks the inference server for rollouts and writes them to the shared folder; the trainer reads them
and writes weights there; the orchestrator tells the inference server to load those. A model is one number: how much
of a text it can reverse.
"""

import argparse
import json
import os
import random
from pathlib import Path

import wire

WORDS = ["symphony", "orchestra", "conductor", "violin"]


def write(path, data):
    """Write a file at once, since another process waits for it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".new").write_text(json.dumps(data))
    path.with_suffix(".new").rename(path)


def read(path):
    wire.wait_until(path.exists)
    return json.loads(path.read_text())


def inference(_folder, _steps):
    model = {"skill": 0.1}

    def answer(path, data):
        if path == "/update_weights":
            model.update(read(Path(data["weights"])))
        if path == "/v1/completions":
            return {"text": "".join(c if random.random() < model["skill"] else "?" for c in reversed(data["prompt"]))}
        return model

    wire.serve("inference", answer)
    print("inference server ready", flush=True)
    wire.wait_until(lambda: False, patience_s=86400)


def orchestrator(folder, steps):
    for step in range(1, steps + 1):
        rollouts = []
        for prompt in WORDS:
            text = wire.call("inference", "/v1/completions", {"prompt": prompt})["text"]
            right = sum(a == b for a, b in zip(text, reversed(prompt), strict=True))
            rollouts.append({"prompt": prompt, "text": text, "reward": right / len(prompt)})
        write(folder / f"step_{step}" / "rollouts.json", rollouts)
        mean = sum(rollout["reward"] for rollout in rollouts) / len(rollouts)
        print(f"step {step}: reward {mean:.2f}, {rollouts[0]['text']}", flush=True)
        weights = folder / f"step_{step}" / "weights.json"
        wire.wait_until(weights.exists)
        wire.call("inference", "/update_weights", {"weights": str(weights)})
    print("orchestrator done", flush=True)


def trainer(folder, steps):
    skill = 0.1
    for step in range(1, steps + 1):
        rollouts = read(folder / f"step_{step}" / "rollouts.json")
        skill = min(1.0, skill + 0.9 / (steps - 1))
        write(folder / f"step_{step}" / "weights.json", {"skill": skill})
        print(f"step {step}: trained on {len(rollouts)} rollouts", flush=True)
    print("trainer done", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("role", choices=["inference", "orchestrator", "trainer"])
    parser.add_argument("--output-dir", type=Path, default=Path())
    parser.add_argument("--steps", type=int, default=8)
    options = parser.parse_args()
    # The folder outlives a run, so each run has its own part.
    globals()[options.role](options.output_dir / os.environ["SYMPH_RUN"], options.steps)


if __name__ == "__main__":
    main()
