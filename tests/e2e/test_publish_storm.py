"""Sixteen writers on one branch over HTTP, killed at random moments, behind a server that cuts connections.

Every publish that was acknowledged must stand in the history exactly once, and nothing may be half-written. The figures
are printed (`pytest -s`).
"""

from __future__ import annotations

import collections
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.gitops.servers import files_at, git, history, http_server, make_bare

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

WRITERS, EACH, CACHES = 16, 25, 4
KILLS_A_SECOND = 1.0
PATIENCE_S = 900


def test_every_acknowledged_publish_is_in_the_history_exactly_once(tmp_path: Path) -> None:
    bare = make_bare(tmp_path / "repos/charts.git")
    source = random.Random(16)
    with http_server(tmp_path / "repos") as server:

        def fault(_path: str, done: bool) -> str:
            return source.choices(["", "cut", "503"], [0.93, 0.05 if done else 0.03, 0.0 if done else 0.02])[0]

        server.fault = fault
        began = time.monotonic()
        kills = run_writers(f"{server.url}/charts.git", tmp_path, source)
        took = time.monotonic() - began
    acknowledged = [line for notes in tmp_path.glob("notes-*") for line in notes.read_text().splitlines()]
    published = [subject.split()[1].removeprefix("team/") for subject in history(bare)[1:]]
    counts = collections.Counter(published)
    sys.stdout.write(
        f"\n{WRITERS} writers x {EACH}: {len(published)} commits in {took:.0f} s ({len(published) / took:.1f}/s),"
        f" {kills} kills, {len(server.requests)} requests\n"
    )
    assert len(acknowledged) == WRITERS * EACH
    assert set(acknowledged) == set(counts)
    assert [name for name, count in counts.items() if count != 1] == []
    git(bare, "fsck", "--strict")
    files = files_at(bare)
    for name in counts:
        chart = {path for path in files if path.startswith(f"charts/team/{name}/0.1.0/")}
        assert len(chart) == 3, f"{name} is half-written: {chart}"
        assert f"envs/dev/team/{name}.symph-app.yaml" in files


def run_writers(url: str, folder: Path, source: random.Random) -> int:
    """Run all writers until all are done, killing one now and then; how many were killed."""
    running: dict[int, subprocess.Popen[bytes]] = {}
    kills, deadline = 0, time.monotonic() + PATIENCE_S
    next_kill = time.monotonic() + 1
    try:
        while not all(is_done(folder, number) for number in range(WRITERS)):
            assert time.monotonic() < deadline, "the writers did not finish"
            for number in range(WRITERS):
                process = running.get(number)
                if (process is None or process.poll() is not None) and not is_done(folder, number):
                    running[number] = start(url, folder, number)
            if time.monotonic() > next_kill:
                victim = source.choice([each for each in running.values() if each.poll() is None])
                os.killpg(victim.pid, signal.SIGKILL)
                kills += 1
                next_kill = time.monotonic() + source.expovariate(KILLS_A_SECOND)
            time.sleep(0.05)
    finally:
        for process in running.values():
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)
    return kills


def start(url: str, folder: Path, number: int) -> subprocess.Popen[bytes]:
    """A writer in a process group of its own, so that its git dies with it; four share a cache, as on one machine."""
    cache, notes = folder / f"cache-{number % CACHES}", folder / f"notes-{number:02}"
    argv = [sys.executable, "-m", "tests.e2e.publish_writer", url, str(cache), str(notes), str(number), str(EACH)]
    with (folder / f"log-{number:02}").open("ab") as log:
        return subprocess.Popen(argv, stdout=log, stderr=log, start_new_session=True, cwd=Path(__file__).parents[2])


def is_done(folder: Path, number: int) -> bool:
    """Whether a writer has noted all of its publishes."""
    notes = folder / f"notes-{number:02}"
    return notes.exists() and len(notes.read_text().splitlines()) == EACH
