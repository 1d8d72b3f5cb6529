"""Concurrent runs make, use and remove the same mount points on a machine of canaries; print the faults."""

from __future__ import annotations

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from symphony_charts.local.mounts.helper import helper_command
from tests.local.mounts.canary_machine import stuck_points

_AT = ("/data/deep/er", "/home/me/exp/out")
# It sees only its own volume, from start to end.
_PROGRAM = "for at in {}; do cat $at/mine; done; sleep 0.0$1; for at in {}; do cat $at/mine; done"


def main(count: str, rounds: str) -> None:
    """Start `count` concurrent runs, each `rounds` times in sequence; all share one state folder."""
    with ThreadPoolExecutor(int(count)) as pool:
        faults = [fault for found in pool.map(_runs, range(int(count)), [int(rounds)] * int(count)) for fault in found]
    left = [at for at in ("/data", *_AT) if Path(at).exists()]
    print(json.dumps({"faults": faults, "left": left}))  # noqa: T201


def _runs(number: int, rounds: int) -> list[str]:
    faults = []
    for attempt in range(rounds):
        state = Path(f"/scratch/{number}.{attempt}")
        (state / "volume").mkdir(parents=True)
        (state / "volume" / "mine").write_text(f"{number}.{attempt}\n")
        rows = [{"source": str(state / "volume"), "at": at, "read_only": False} for at in _AT]
        plan = {"scratch": str(state / "scratch"), "journal": "/scratch/points", "targets": rows, "prepare": []}
        (state / "plan").write_text(json.dumps(plan))
        paths = " ".join(_AT)
        program = ["/bin/sh", "-c", _PROGRAM.format(paths, paths), "sh", str(number)]
        argv = ["unshare", "--mount", "--propagation", "slave", *helper_command(state / "plan"), *program]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
        if done.stdout != f"{number}.{attempt}\n" * 4:
            faults.append(f"{done.returncode} {done.stdout!r} {done.stderr[-300:]}")
        if stuck := stuck_points("/scratch/points"):
            faults.append(f"removal: {stuck}")
    return faults
