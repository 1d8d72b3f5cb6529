"""A sweep of many short trials on this machine, beside its peers in the same run.

    python benchmarks/sweep.py [--repeat N] [--parallel P] [COUNT]      (default: 200 trials, 8 at a time, once)

Every trial is the same: a shell that prints `loss=SEED` and sleeps for a tenth of a second. `xargs -P` starts shells
and keeps nothing but their output. `optuna` is its own loop, ask and tell with a journal on disk and a shell for each
trial in as many threads; it is left out where it is not installed. Ours keeps a run of each trial, with log, state,
exit status and addresses; `again` is the same command once more, which keeps all. Seconds of wall clock and of CPU of
what was waited for, and the first in times of `xargs`.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

_TRIAL = "echo loss=$SEED; sleep 0.1"
_SPEC = f"name: bench\nprocesses: {{w: {{cmds: ['{_TRIAL}'], env: {{SEED: '0'}}, restart: never}}}}\n"
_OPTUNA = """
import optuna, subprocess, sys
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
optuna.logging.set_verbosity(optuna.logging.WARNING)
count, parallel, file, trial = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
def objective(asked):
    seed = asked.suggest_int("seed", 0, count)
    done = subprocess.run(["sh", "-c", trial], env={"SEED": str(seed)}, capture_output=True, text=True, check=True)
    return float(done.stdout.partition("=")[2])
study = optuna.create_study(storage=JournalStorage(JournalFileBackend(file)))
study.optimize(objective, n_trials=count, n_jobs=parallel)
"""


@contextmanager
def places() -> Iterator[tuple[Path, Mapping[str, str]]]:
    """Yield a folder that is removed afterwards, and an environment in which symph keeps everything in it."""
    with tempfile.TemporaryDirectory(prefix="bench-sweep-") as folder:
        private = {"SYMPH_STATE_DIR": f"{folder}/state", "SYMPH_RUNTIME_DIR": f"{folder}/run"}
        yield Path(folder), {**os.environ, **private}


def ours(count: int, parallel: int, folder: Path) -> list[str]:
    (folder / "e.yaml").write_text(_SPEC)
    grid = ["--grid", f"seed=1..{count}", "--up", "--parallel", str(parallel), "-o", "name"]
    return [sys.executable, "-m", "symphony_charts", "sweep", str(folder / "e.yaml"), *grid]


def xargs(count: int, parallel: int, _folder: Path) -> list[str]:
    return ["sh", "-c", f"seq {count} | xargs -P {parallel} -I N env SEED=N sh -c '{_TRIAL}'"]


def optuna(count: int, parallel: int, folder: Path) -> list[str]:
    return [sys.executable, "-c", _OPTUNA, str(count), str(parallel), str(folder / "journal"), _TRIAL]


def again(count: int, parallel: int, folder: Path) -> list[str]:
    """Return the same `symph sweep --up` again, after the sweep has finished."""
    command = ours(count, parallel, folder)
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return command


def measured(make: Callable[[int, int, Path], list[str]], count: int, parallel: int) -> tuple[float, float]:
    """Return seconds of wall clock, and CPU seconds of waited-for children."""
    with places() as (folder, environment):
        previous = {name: os.environ.get(name) for name in ("SYMPH_STATE_DIR", "SYMPH_RUNTIME_DIR")}
        os.environ.update(environment)
        try:
            command = make(count, parallel, folder)
            before, began = os.times(), time.monotonic()
            subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
            wall, after = time.monotonic() - began, os.times()
        finally:
            for name, value in previous.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", metavar="COUNT", nargs="?", type=int, default=200)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--parallel", type=int, default=8)
    args = parser.parse_args()
    peers = {"xargs -P": xargs, "symph": ours, "symph again": again}
    if importlib.util.find_spec("optuna"):
        peers["optuna"] = optuna
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in peers}
    for _ in range(args.repeat):
        for name, make in peers.items():
            seconds[name].append(measured(make, args.count, args.parallel))
    walls = {name: statistics.median(wall for wall, _ in each) for name, each in seconds.items()}
    cpus = {name: statistics.median(cpu for _, cpu in each) for name, each in seconds.items()}
    ideal = args.count * 0.1 / args.parallel
    print(f"{args.count} trials of 0.1 s, {args.parallel} at a time: {ideal:.1f} s if starting one were free")
    for name in peers:
        ratio = walls[name] / walls["xargs -P"]
        print(f"{name:12} {walls[name]:7.1f} s wall {cpus[name]:7.1f} s CPU   {ratio:5.1f} x")


if __name__ == "__main__":
    main()
