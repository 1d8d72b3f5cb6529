"""Many ends of processes in real tmux; `SYMPH_SOAK` runs five times as many."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from symphony_charts.local import up as local_run
from tests.local.runs import start

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("here")]

_SCALE = 5 if "SYMPH_SOAK" in os.environ else 1
# Records the moment of its death and dies: with status N, or by signal N - 128 if N is above 128.
_DIE = """
import os, sys, time
end = int(sys.argv[1])
# Nothing while others are still being started, or not all at the same moment.
time.sleep(float(sys.argv[3]))
with open(sys.argv[2], "w") as file:
    file.write(str(time.time()))
if end > 128:
    os.kill(os.getpid(), end - 128)
    time.sleep(60)
os._exit(end)
"""
_FATAL = [int(number) for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGSEGV, signal.SIGABRT)]


def _statuses(batch: int) -> list[int]:
    return [(batch * 50 + number) % 120 if number % 3 else 128 + _FATAL[number % len(_FATAL)] for number in range(50)]


def test_many_deaths_have_their_statuses(tmp_path: Path) -> None:
    late: tuple[list[float], list[float]] = ([], [])
    wrong = []
    for batch in range(4 * _SCALE):
        wanted = _statuses(batch)
        data = {
            f"p{number}": {
                "command": [sys.executable, "-I", "-S", "-c", _DIE, str(status), str(tmp_path / f"{batch}.{number}")],
                "args": [str(0 if batch % 2 else 1 + number / 25)],
                "restart": "never",
                "retries": 0,
                "local": {"tty": number % 2 == 0},
            }
            for number, status in enumerate(wanted)
        }
        run = start(tmp_path, f"deaths-{batch}", processes=data, on_failure="continue")
        local_run.wait(run)
        for number, item in enumerate(run.state().processes):
            if item.status != wanted[number]:
                wrong.append((batch, number, wanted[number], item.status))
            late[batch % 2].append((item.ended or 0.0) - float((tmp_path / f"{batch}.{number}").read_text()))
    for when, found in zip(("", " during the start"), late, strict=True):
        middle, most, all_of = (sorted(found)[int(len(found) * share) - 1] * 1000 for share in (0.5, 0.99, 1))
        sys.stdout.write(f"known after death{when}: median {middle:.1f} ms, 99 % {most:.1f} ms, all {all_of:.1f} ms\n")
    assert wrong == []
