"""Proximal policy optimisation on a corridor: walk right to the goal. Standard library only.

python ppo.py learner --actors 4     serves the policy, updates it, ends after --updates
python ppo.py actor                  plays episodes with the newest policy until the learner says stop
"""

import argparse
import math
import os
import random

import wire

LENGTH, LIMIT = 6, 40
CLIP, RATE, GAMMA, EPOCHS = 0.2, 0.5, 0.97, 4


def chances(logits):
    """Return the probabilities of the two actions, left and right."""
    right = 1 / (1 + math.exp(logits[0] - logits[1]))
    return [1 - right, right]


def episode(policy, choose):
    """Play one episode; return its steps as (place, action, probability) and if it reached the goal."""
    place, steps = 0, []
    while place < LENGTH and len(steps) < LIMIT:
        odds = chances(policy[place])
        action = choose(odds)
        steps.append((place, action, odds[action]))
        place = max(0, place + (1 if action else -1))
    return steps, place == LENGTH


def improve(policy, values, episodes):
    """Take the steps of PPO's clipped objective."""
    samples = []
    for steps, won in episodes:
        for left, (place, action, chance) in enumerate(reversed(steps)):
            samples.append((place, action, chance, GAMMA**left if won else 0.0))
    for _ in range(EPOCHS):
        for place, action, chance, gain in samples:
            advantage = gain - values[place]
            values[place] += 0.05 * advantage
            now = chances(policy[place])
            ratio = now[action] / chance
            if (advantage > 0 and ratio > 1 + CLIP) or (advantage < 0 and ratio < 1 - CLIP):
                continue
            for other in range(2):
                slope = (other == action) - now[other]
                policy[place][other] += RATE * advantage * ratio * slope / len(episodes)


def learn(options):
    policy, values = [[0.0, 0.0] for _ in range(LENGTH)], [0.0] * LENGTH
    episodes, actors = [], set()
    is_done = False

    def answer(path, data):
        if path == "/episode":
            episodes.append((data["steps"], data["won"]))
        if is_done:
            actors.discard(data["actor"])
        else:
            actors.add(data["actor"])
        return {"stop": is_done, "policy": policy}

    wire.serve("policy", answer)
    print("learner ready", flush=True)
    for update in range(1, options.updates + 1):
        wire.wait_until(lambda: len(episodes) >= options.batch)
        # Only the newest: PPO learns little from episodes of an old policy, which pile up if the learner is slow.
        batch = episodes[-options.batch :]
        episodes.clear()
        improve(policy, values, batch)
        print(f"update {update}: {sum(won for _, won in batch)} of {len(batch)} reach the goal", flush=True)
    steps, won = episode(policy, lambda odds: int(odds[1] > odds[0]))
    print(f"the greedy policy {'reaches' if won else 'misses'} the goal in {len(steps)} steps", flush=True)
    is_done = True
    wire.wait_until(lambda: not actors)


def act():
    name = f"actor-{os.environ['SYMPH_INDEX']}"
    told = wire.call("policy", "/policy", {"actor": name})
    count = 0
    while not told["stop"]:
        steps, won = episode(told["policy"], lambda odds: int(random.random() < odds[1]))
        told = wire.call("policy", "/episode", {"actor": name, "steps": steps, "won": won})
        count += 1
    print(f"{name} done after {count} episodes", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("role", choices=["learner", "actor"])
    parser.add_argument("--updates", type=int, default=30)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--actors", type=int, default=4)
    options = parser.parse_args()
    learn(options) if options.role == "learner" else act()


if __name__ == "__main__":
    main()
