"""Gradient descent on a noisy parabola; the learning rate and the seed come from the environment."""

import os
import random

rate, noise = float(os.environ["LR"]), random.Random(int(os.environ["SEED"]))
position = 10.0
for _ in range(50):
    gradient = 2 * position + noise.gauss(0, 0.1)
    position -= rate * gradient
print(f"{os.environ['SYMPH_EXPERIMENT']}: lr={rate:g} loss={position * position:.6f}", flush=True)
