"""A sweep that is repeatedly killed and restarted ends with each trial run once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from symphony_charts.local.runs import live_runs
from tests.waiting import eventually, running_below

TRIALS, KILLS = int(os.environ.get("SYMPH_TRIALS", "80")), 10
_SPEC = """
name: once
processes:
  w:
    cmds: ['printf "%s\\n" "$SEED" >> ran', 'sleep 0.2', 'printf "%s\\n" "$SEED" >> ended']
    env: {SEED: '0'}
    restart: never
"""


@pytest.fixture
def sweep(here: None, tmp_path: Path) -> list[str]:
    (tmp_path / "once.yaml").write_text(_SPEC)
    words = ["sweep", "once.yaml", "--grid", f"seed=1..{TRIALS}", "--up", "--parallel", "8", "-o", "json"]
    return [sys.executable, "-m", "symphony_charts", *words]


def test_a_sweep_that_is_killed_at_random_moments_runs_each_trial_once(
    sweep: list[str], tmp_path: Path, private_places: Path
) -> None:
    number = int(os.environ.get("SYMPH_SEED") or random.SystemRandom().randrange(10**6))
    chance = random.Random(number)
    for _ in range(KILLS):
        with subprocess.Popen(sweep, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as going:
            try:
                going.wait(chance.uniform(0.3, 4.0))
            except subprocess.TimeoutExpired:
                going.send_signal(signal.SIGKILL)
    done = subprocess.run(sweep, cwd=tmp_path, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, f"SYMPH_SEED={number}\n{done.stderr}"
    assert {item["state"] for item in json.loads(done.stdout)["items"]} == {"succeeded"}
    wanted = sorted(map(str, range(1, TRIALS + 1)))
    for name in ("ran", "ended"):
        assert sorted((tmp_path / name).read_text().split()) == wanted, f"SYMPH_SEED={number}"
    assert live_runs() == []
    # No sockets and programs of unknown runs are left either.
    eventually(lambda: not list((private_places / "run").glob("*.sock")), 60)
    eventually(lambda: not running_below(private_places), 60)
