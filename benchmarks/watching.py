"""How quickly verbs answer: `symph ps`, `ls`, `logs` of an experiment on a cluster and on this machine, whole process.

    python -m tests.e2e.rig up && eval "$(python -m tests.e2e.rig env)"
    python benchmarks/watching.py [--repeat N] [REPLICAS]      (default: 7 runs, 10 replicas)

Prints the best and the median in seconds of wall clock, beside the import of the official client alone
and a bare interpreter in the same run. Without a cluster there are the lines of this machine.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path


def timed(argv: list[str], env: dict[str, str], runs: int) -> list[float]:
    """Return the seconds of each run after a warm-up run."""
    found = []
    for _ in range(runs + 1):
        started = time.perf_counter()
        subprocess.run(argv, env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120)
        found.append(time.perf_counter() - started)
    return sorted(found[1:])


def main() -> None:
    """Start an experiment of REPLICAS processes on both, and print a line for each verb."""
    from symphony_charts.clusters.base import Cluster
    from symphony_charts.errors import ToolFailed
    from symphony_charts.spec.data import from_data

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("replicas", metavar="REPLICAS", nargs="?", type=int, default=10)
    parser.add_argument("--repeat", type=int, default=7)
    args = parser.parse_args()
    replicas, first = args.replicas, "w-0" if args.replicas > 1 else "w"
    program = ["sh", "-c", "for i in 1 2 3 4 5; do echo line $i; done; exec sleep 600"]
    process = {"command": program, "replicas": replicas, "grace_period": 1, "requests": {"cpu": "1m", "memory": "1Mi"}}
    experiment = from_data({"name": "bench", "image": "busybox:1.37.0", "processes": {"w": process}})
    namespace = f"bench-{uuid.uuid4().hex[:6]}"
    with tempfile.TemporaryDirectory(prefix="symph-b-", dir="/tmp") as name:
        os.environ.update(SYMPH_STATE_DIR=f"{name}/state", SYMPH_RUNTIME_DIR=f"{name}/run")
        places = {"kube": Cluster.new("kube", namespace=namespace), "tmux": Cluster.new("tmux")}
        flags = {"kube": ["-n", namespace], "tmux": ["--on", "tmux"]}
        env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
        symph = [sys.executable, "-m", "symphony_charts"]
        print(f"{'what':28} {'best':>7} {'median':>7}   {replicas} processes")
        for title, code in (("python -c pass", "pass"), ("import kubernetes", "import kubernetes")):
            _print(title, timed([sys.executable, "-c", code], env, args.repeat))
        for place, cluster in places.items():
            try:
                cluster.launch(experiment)
            except ToolFailed as error:
                print(f"{place} is left out: {error.what}")
                continue
            try:
                cluster.wait("bench", "ready", timeout_s=120)
                for verb in (["p"], ["ls"], ["describe"], ["logs"], ["exec", first, "bench", "--", "true"]):
                    place_flags = flags[place]
                    at = verb.index("--") if "--" in verb else len(verb)
                    argv = [*symph, *verb[:at], *place_flags, *verb[at:]]
                    _print(f"{place}: symph {verb[0]}", timed(argv, env, args.repeat))
            finally:
                cluster.delete("bench")


def _print(title: str, found: list[float]) -> None:
    print(f"{title:28} {found[0]:7.3f} {statistics.median(found):7.3f}")


if __name__ == "__main__":
    main()
