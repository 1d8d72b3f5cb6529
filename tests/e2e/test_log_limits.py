"""A process that prints more than its log may hold, in real tmux, with a follower."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from symphony_charts.local import up as local_run
from tests.local.runs import python, start

pytestmark = pytest.mark.slow

# 60 times 2,000 lines of 50 bytes: 6 MB. It waits for its follower, since a log is cut even if unread.
CHATTY = """
import os, sys, time
for turn in range(60):
    while not os.path.exists(os.path.join(sys.argv[1], str(turn))):
        time.sleep(0.01)
    sys.stdout.write("".join(f"{turn * 2000 + number:07d} {'x' * 41}\\n" for number in range(2000)))
    sys.stdout.flush()
"""
SYMPH = [sys.executable, "-m", "symphony_charts"]


@pytest.mark.parametrize("tty", [True, False])
def test_a_follower_sees_every_line_and_the_disk_holds_the_last_ones(tmp_path: Path, here: None, tty: bool) -> None:
    turns = tmp_path / "turns"
    turns.mkdir()
    (turns / "0").touch()
    local = {"tty": tty, "log_size": "1Mi"}
    run = start(tmp_path, local=local, processes={"a": python(CHATTY, args=[str(turns)])})
    printed = []
    with subprocess.Popen([*SYMPH, "logs", "-f", "a", "exp"], stdout=subprocess.PIPE, text=True) as follower:
        assert follower.stdout
        for line in follower.stdout:
            printed.append(line)
            if len(printed) % 2000 == 0:
                (turns / str(len(printed) // 2000)).touch()
    assert local_run.wait(run) == 0
    assert [int(line.split()[0]) for line in printed] == list(range(120000))
    log = run.process_dir(0) / "log"
    assert log.stat().st_size >= 6_000_000
    assert log.stat().st_blocks * 512 < (1 << 20) * 1.5
    done = subprocess.run([*SYMPH, "logs", "a", "exp"], capture_output=True, text=True, check=True)
    kept = [int(line.split()[0]) for line in done.stdout.splitlines()]
    assert kept == list(range(kept[0], 120000))
    assert len(kept) * 50 > (1 << 20) * 0.7
