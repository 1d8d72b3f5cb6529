"""`symph logs` of a log of 1 MB beside one of 1 GB, and both beside `tail`, as whole processes in the same run.

    python benchmarks/logs.py [--repeat N] [--size BYTES]      (default: 7 times, 1 GB)

The state folder is made by hand: two ended runs (so that -f ends) with a log and its index, as a process that prints
50 lines at once leaves them. Turns are interleaved and medians printed: milliseconds of wall clock, what that is in
times of the same command on 1 MB, and megabytes of memory at the most. `tail` is given the file itself.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from symphony_charts.local.logs import Clock

_LINE = b"%09d a line of a program that prints the reward of an episode now and then, and some more of it\n"
_AT_ONCE = 50
_SMALL = 1_000_000


def make_run(state: Path, name: str, size: int) -> Path:
    """Make an ended run whose process has printed `size` bytes; return its log."""
    run = state / "local" / name / "20260101-000000-000000"
    (run / "p" / "0").mkdir(parents=True)
    process = {"slot": 0, "name": "a", "group": "", "pod": "a", "process": "a", "phase": "done", "status": 0}
    more = {"ready": False, "restarts": 0, "started": 1.0, "ended": 2.0, "index": 0}
    facts = {"experiment": name, "phase": "finished", "started": 1.0, "ended": 2.0, "supervisor": 0, "survivors": []}
    (run / "state.json").write_text(json.dumps({**facts, "processes": [{**process, **more}]}))
    planned = {**process, **more, "is_service": False, "is_step": False, "gpus": [], "address": "127.0.0.1"}
    plan = {"experiment": name, "processes": [planned], "ports": {}, "services": [], "base_address": "127.0.0.1"}
    (run / "plan.json").write_text(json.dumps(plan))
    log = run / "p" / "0" / "log"
    count, written = 0, 0
    with log.open("wb") as file, log.with_name("log.idx").open("wb") as index:
        while written < size:
            text = b"".join(_LINE % (count + number) for number in range(_AT_ONCE))
            file.write(text)
            count, written = count + _AT_ONCE, written + len(text)
            index.write(struct.pack("<QQ", 1_767_225_600_000 + count, written))
    return log


def measured(argv: Sequence[str], env: dict[str, str]) -> tuple[float, float]:
    """Return seconds of wall clock of a program, and its peak memory in megabytes."""
    began = time.perf_counter()
    child = subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    took = time.perf_counter() - began
    assert child.returncode == 0, argv
    return took, usage.ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--size", type=int, default=1_000_000_000)
    args = parser.parse_args()
    state = Path(tempfile.mkdtemp(prefix="symph-bench-"))
    try:
        logs = {name: make_run(state, name, size) for name, size in (("small", _SMALL), ("large", args.size))}
        milliseconds, _ = Clock(logs["large"])[-20 + len(Clock(logs["large"]))]
        since = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(milliseconds / 1000))
        symph = [sys.executable, "-m", "symphony_charts", "logs"]
        commands = {
            "tail -n 5 FILE": lambda name: ["tail", "-n", "5", str(logs[name])],
            "symph logs --tail 5": lambda name: [*symph, name, "--tail", "5"],
            "symph logs --tail 5 --timestamps": lambda name: [*symph, name, "--tail", "5", "--timestamps"],
            "symph logs --tail 5 --regex 9": lambda name: [*symph, name, "--tail", "5", "--regex", "9"],
            "symph logs -f --tail 5": lambda name: [*symph, name, "-f", "--tail", "5"],
            "symph logs --since": lambda name: [*symph, name, "--since", since],
        }
        env = {**os.environ, "SYMPH_STATE_DIR": str(state), "SYMPH_RUNTIME_DIR": str(state / "run")}
        told: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for _ in range(args.repeat):
            for title, command in commands.items():
                for name in logs:
                    told.setdefault((title, name), []).append(measured(command(name), env))
        print(f"{'':34} {'1 MB':>9} {f'{args.size / 1e9:g} GB':>9} {'times':>6} {'memory':>9}")
        for title in commands:
            small, large = (statistics.median(took for took, _ in told[title, name]) for name in logs)
            memory = max(most for _, most in told[title, "large"])
            print(f"{title:34} {small * 1000:6.0f} ms {large * 1000:6.0f} ms {large / small:6.2f} {memory:6.0f} MB")
    finally:
        shutil.rmtree(state)


if __name__ == "__main__":
    main()
