"""CPU seconds of a whole ``torchx run --dryrun`` by number of replicas: our scheduler, and TorchX's own two beside it.

    python benchmarks/torchx.py

Prints the ratio of each to ``torchx --help`` in the same run, and how much text the dry run gives.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile

RUNS = 3
SCHEDULERS = {
    "symph": "on=kube,namespace=ml",
    "kubernetes_mcad": "namespace=ml",
    "kubernetes": "namespace=ml,queue=q",
}


def torchx(folder: str, *words: str) -> tuple[float, int]:
    """CPU seconds of one call, and how many bytes it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    argv = [sys.executable, "-m", "torchx.cli.main", *words]
    done = subprocess.run(argv, cwd=folder, env={**os.environ, "HOME": folder}, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, len(done.stdout)


def best(folder: str, *words: str) -> tuple[float, int]:
    """The least CPU time of several calls."""
    return min(torchx(folder, *words) for _ in range(RUNS))


def main() -> None:
    """Print a line for each scheduler and size."""
    with tempfile.TemporaryDirectory() as folder:
        floor, _ = best(folder, "--help")
        print(f"{'scheduler':<16} {'replicas':>8} {'cpu s':>6} {'x help':>7} {'bytes':>9}")
        for replicas in (1, 100, 1000):
            for scheduler, cfg in SCHEDULERS.items():
                words = ("run", "-s", scheduler, "-cfg", cfg, "--workspace", "", "--dryrun")
                seconds, size = best(folder, *words, "utils.sh", "--num_replicas", str(replicas), "sleep", "1")
                print(f"{scheduler:<16} {replicas:>8} {seconds:>6.2f} {seconds / floor:>7.1f} {size:>9}")


if __name__ == "__main__":
    main()
