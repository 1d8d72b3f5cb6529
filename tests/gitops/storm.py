"""Many writers on one branch over HTTP or ssh, killed at random moments, behind a server that cuts connections."""

from __future__ import annotations

import collections
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.gitops.servers import files_at, git, history, http_server, make_bare
from tests.gitops.ssh_server import ssh_server


@dataclass(frozen=True, kw_only=True)
class Storm:
    """Number of writers, publishes per writer and shared caches, and the rate of kills per second."""

    writers: int
    each: int
    caches: int
    kills_a_second: float
    patience_s: float


def survive(folder: Path, storm: Storm, *, over_ssh: bool = False) -> str:
    bare = make_bare(folder / "repos/charts.git")
    source = random.Random(16)
    with _served(folder, bare, source, over_ssh=over_ssh) as (url, env):
        began = time.monotonic()
        kills = run_writers(url, folder, source, storm, env)
        took = time.monotonic() - began
    acknowledged = [line for notes in folder.glob("notes-*") for line in notes.read_text().splitlines()]
    counts = collections.Counter(subject.split()[1].removeprefix("team/") for subject in history(bare)[1:])
    assert len(acknowledged) == storm.writers * storm.each
    assert set(acknowledged) == set(counts)
    assert [name for name, count in counts.items() if count != 1] == []
    git(bare, "fsck", "--strict")
    files = files_at(bare)
    for name in counts:
        chart = {path for path in files if path.startswith(f"charts/team/{name}/0.1.0/")}
        assert len(chart) == 3, f"{name} is half-written: {chart}"
        assert f"envs/dev/team/{name}.symph-app.yaml" in files
    return (
        f"{storm.writers} writers x {storm.each}: {len(counts)} commits in {took:.0f} s ({len(counts) / took:.1f}/s),"
        f" {kills} kills, over {'ssh' if over_ssh else 'HTTP'}"
    )


@contextmanager
def _served(
    folder: Path, bare: Path, source: random.Random, *, over_ssh: bool
) -> Iterator[tuple[str, Mapping[str, str]]]:
    if over_ssh:
        with ssh_server(folder / "ssh") as sshd:
            sshd.break_sessions()
            yield sshd.url(bare), {"GIT_SSH_COMMAND": sshd.command()}
        return
    with http_server(folder / "repos") as server:

        def fault(_path: str, done: bool) -> str:
            return source.choices(["", "cut", "503"], [0.93, 0.05 if done else 0.03, 0.0 if done else 0.02])[0]

        server.fault = fault
        yield f"{server.url}/charts.git", {}


def run_writers(url: str, folder: Path, source: random.Random, storm: Storm, env: Mapping[str, str]) -> int:
    running: dict[int, subprocess.Popen[bytes]] = {}
    kills, deadline = 0, time.monotonic() + storm.patience_s
    next_kill = time.monotonic() + 1 / storm.kills_a_second
    try:
        while not all(is_done(folder, number, storm) for number in range(storm.writers)):
            assert time.monotonic() < deadline, "the writers did not finish"
            for number in range(storm.writers):
                process = running.get(number)
                if (process is None or process.poll() is not None) and not is_done(folder, number, storm):
                    running[number] = start(url, folder, number, storm, env)
            if time.monotonic() > next_kill and (alive := [one for one in running.values() if one.poll() is None]):
                victim = source.choice(alive)
                os.killpg(victim.pid, signal.SIGKILL)
                kills += 1
                next_kill = time.monotonic() + source.expovariate(storm.kills_a_second)
            time.sleep(0.05)
    finally:
        for process in running.values():
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)
    return kills


def start(url: str, folder: Path, number: int, storm: Storm, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a writer in its own process group, so that its git dies with it; four share a cache, as on one machine."""
    cache, notes = folder / f"cache-{number % storm.caches}", folder / f"notes-{number:02}"
    argv = [sys.executable, "-m", "tests.e2e.publish_writer", url, str(cache), str(notes), str(number), str(storm.each)]
    with (folder / f"log-{number:02}").open("ab") as log:
        return subprocess.Popen(
            argv,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd=Path(__file__).parents[2],
            env={**os.environ, **env},
        )


def is_done(folder: Path, number: int, storm: Storm) -> bool:
    notes = folder / f"notes-{number:02}"
    return notes.exists() and len(notes.read_text().splitlines()) == storm.each
