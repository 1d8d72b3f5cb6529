"""CPU seconds of a whole ``torchx run --dryrun`` by number of replicas: our scheduler, and TorchX's own two beside it.

    python benchmarks/torchx.py [--small]

Prints the ratio of each to ``torchx --help`` in the same run, and how much text the dry run gives; then what a chart of
20 roles with 1,000 replicas each costs by way of TorchX, and from the experiment that came out of it. `--small` has one
replica and one run of everything, to see that it runs.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

RUNS = 3
SCHEDULERS = {
    "symph": "on=kube,namespace=ml",
    "kubernetes_mcad": "namespace=ml",
    "kubernetes": "namespace=ml,queue=q",
}


def torchx(folder: str, *words: str) -> tuple[float, int]:
    """Return CPU seconds of one call, and the number of printed bytes."""
    return cpu(folder, "torchx.cli.main", *words)


def cpu(folder: str, *words: str) -> tuple[float, int]:
    """Return the same for any module's command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    argv = [sys.executable, "-m", *words]
    done = subprocess.run(argv, cwd=folder, env={**os.environ, "HOME": folder}, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, len(done.stdout)


def best(folder: str, runs: int, *words: str) -> tuple[float, int]:
    """Return the least CPU time of several calls, and the number of printed bytes."""
    return min(torchx(folder, *words) for _ in range(runs))


COMPONENT = """
from torchx.specs import AppDef, Resource, Role

def big() -> AppDef:
    one = Resource(cpu=1, gpu=0, memMB=1000)
    args = ["main.py", "--id=${app_id}", "--rank=${replica_id}"]
    return AppDef(name="big", roles=[
        Role(
            name=f"r{n}", image="i:1", entrypoint="python", args=args,
            num_replicas=1000, resource=one, port_map={f"p{n}": 7000 + n},
        )
        for n in range(20)
    ])
"""


def big_chart(folder: str, runs: int) -> tuple[float, float]:
    """Return CPU seconds of the chart of 20 roles x 1,000 replicas: with TorchX, and with `symph package` alone."""
    Path(folder, "big.py").write_text(COMPONENT)
    words = ("run", "-s", "symph", "-cfg", "on=chart,dest=charts", "--workspace", "", "big.py:big")
    through, _ = best(folder, runs, *words)
    alone = min(
        cpu(folder, "symphony_charts", "package", "charts/big.yaml", "-d", f"again-{n}")[0] for n in range(runs)
    )
    return through, alone


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true")
    is_small = parser.parse_args().small
    runs = 1 if is_small else RUNS
    with tempfile.TemporaryDirectory() as folder:
        floor, _ = best(folder, runs, "--help")
        print(f"{'scheduler':<16} {'replicas':>8} {'cpu s':>6} {'x help':>7} {'bytes':>9}")
        for replicas in (1,) if is_small else (1, 100, 1000):
            for scheduler, cfg in SCHEDULERS.items():
                words = ("run", "-s", scheduler, "-cfg", cfg, "--workspace", "", "--dryrun")
                seconds, size = best(folder, runs, *words, "utils.sh", "--num_replicas", str(replicas), "sleep", "1")
                print(f"{scheduler:<16} {replicas:>8} {seconds:>6.2f} {seconds / floor:>7.1f} {size:>9}")
        through, alone = big_chart(folder, runs)
        print(f"20 roles x 1000: {through:.2f} s through TorchX, {alone:.2f} s from the experiment")


if __name__ == "__main__":
    main()
