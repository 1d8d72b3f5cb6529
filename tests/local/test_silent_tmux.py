"""A run survives a tmux server that does not answer for a while, and ends without the program tmux."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from symphony_charts.local import tmux_client
from symphony_charts.local.runs import Run, find_run
from tests.local.runs import supervisor_pid, tmux_pid, until

pytestmark = pytest.mark.usefixtures("here")

WAITS = "waits for tmux, which does not answer"
# Fails once the file `fail` exists, and removes it.
AGENT = "echo started; while ! [ -f fail ]; do sleep 0.05; done; rm fail; exit 7"


def argv(*words: str) -> list[str]:
    return [sys.executable, "-m", "symphony_charts", *words]


def symph(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv(*words), capture_output=True, text=True, timeout=100, check=False)


def write_spec(folder: Path, word: str = "a") -> Path:
    agent = {"command": ["/bin/sh", "-c", AGENT, word], "restart": "on-failure", "retries": 5}
    learner = {"command": ["/bin/sleep", "300"]}
    spec = folder / "exp.yaml"
    spec.write_text(json.dumps({"name": "exp", "processes": {"learner": learner, "agent": agent}}))
    return spec


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Start a run of two processes, of which `agent` fails on demand."""
    done = symph("up", str(write_spec(tmp_path)))
    assert done.returncode == 0, done.stderr
    return find_run("exp")


@contextlib.contextmanager
def silent_tmux(run: Run) -> Iterator[None]:
    """Stop the tmux server of the run within the context."""
    server = tmux_client.server_pid(run.socket)
    assert server
    os.kill(server, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(server, signal.SIGCONT)


def items() -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = json.loads(symph("ps", "exp", "-o", "json").stdout)["items"]
    return listed


def agent() -> dict[str, Any]:
    return next(item for item in items() if item["name"] == "agent")


def starts() -> int:
    return symph("logs", "agent", "exp").stdout.count("started")


def test_a_process_that_fails_while_tmux_is_silent_starts_again_once_it_answers(run: Run, tmp_path: Path) -> None:
    supervisor = supervisor_pid(run)
    with silent_tmux(run):
        (tmp_path / "fail").touch()
        until(lambda: WAITS in agent()["state"])
        assert (agent()["phase"], agent()["restarts"]) == ("pending", 0)
    until(lambda: agent()["phase"] == "running")
    until(lambda: starts() == 2)
    assert (agent()["restarts"], supervisor_pid(run)) == (1, supervisor)


def test_a_supervisor_hears_of_the_end_while_tmux_is_silent(run: Run, tmp_path: Path) -> None:
    with silent_tmux(run):
        (tmp_path / "fail").touch()
        until(lambda: WAITS in agent()["state"])
        began = time.monotonic()
        down = symph("down", "exp")
        assert (down.returncode, "killed its supervisor" in down.stderr) == (0, False), down.stderr
        assert time.monotonic() - began < 20
    assert [item["phase"] for item in items()] == ["stopped", "stopped"]
    assert run.members() == []


def test_a_restart_says_that_it_waits_for_tmux_and_is_done_once_that_answers(run: Run) -> None:
    with silent_tmux(run), _started("restart", "agent", "exp") as (command, stderr):
        assert stderr.readline() == f"exp: agent {WAITS}\n"
        assert command.poll() is None
        os.kill(tmux_pid(run), signal.SIGCONT)
        assert command.wait(60) == 0
    until(lambda: starts() == 2)


@pytest.mark.parametrize("verb", ["restart", "up"])
def test_a_restart_that_tmux_holds_up_ends_in_time_and_is_done_later(run: Run, tmp_path: Path, verb: str) -> None:
    words = ["restart", "agent", "exp"] if verb == "restart" else ["up", str(write_spec(tmp_path, word="b"))]
    supervisor, began = supervisor_pid(run), time.monotonic()
    with silent_tmux(run):
        done = symph(*words)
        assert time.monotonic() - began < 60
        assert (done.returncode, "Traceback" in done.stderr) == (6, False)
        assert f"error: agent {WAITS}" in done.stderr
    until(lambda: starts() == 2)
    assert agent()["phase"] == "running"
    assert supervisor_pid(run) == supervisor


def test_a_run_ends_though_tmux_was_uninstalled_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("tmux", "sh", "env", "cat", "tail", "unshare", "mount"):
        (tools / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(tools))
    assert symph("up", str(write_spec(tmp_path))).returncode == 0
    run = find_run("exp")
    (tools / "tmux").unlink()
    down = symph("down", "exp")
    assert (down.returncode, run.members(), run.state().phase) == (0, [], "stopped"), down.stderr
    assert "Traceback" not in (run.folder / "supervisor.log").read_text()


def test_a_run_in_the_foreground_says_that_it_waits_for_tmux(tmp_path: Path) -> None:
    with _started("run", str(write_spec(tmp_path))) as (command, stderr):
        until(_is_up)
        run = find_run("exp")
        with silent_tmux(run):
            (tmp_path / "fail").touch()
            while WAITS not in (line := stderr.readline()):
                assert line
        while "started again" not in (line := stderr.readline()):
            assert line
        command.terminate()
        assert command.wait(60) == 128 + signal.SIGTERM


def _is_up() -> bool:
    listed = symph("ps", "exp", "-o", "json")
    return listed.returncode == 0 and [item["phase"] for item in json.loads(listed.stdout)["items"]] == ["running"] * 2


@contextlib.contextmanager
def _started(*words: str) -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
    """Start a command; yield it and its stderr."""
    with subprocess.Popen(argv(*words), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as command:
        assert command.stderr is not None
        try:
            yield command, command.stderr
        finally:
            command.kill()
