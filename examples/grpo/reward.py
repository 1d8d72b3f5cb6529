"""A reward server, and the function by which TRL asks it: `--reward_funcs reward.score`.

A completion is worth more, the closer its length is to 20 characters.
"""

import wire


def score(completions, **_):
    """Return a reward per completion."""
    return wire.call("reward", "/score", {"completions": completions})


def worth(completion):
    text = completion if isinstance(completion, str) else completion[-1]["content"]
    return max(0.0, 1 - abs(20 - len(text)) / 20)


def main():
    wire.serve("reward", lambda _path, data: [worth(text) for text in data["completions"]] if data else [])
    print("reward server ready", flush=True)
    wire.wait_until(lambda: False, patience_s=86400)


if __name__ == "__main__":
    main()
