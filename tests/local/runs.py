"""Runs in real tmux for tests: started from plain data, always ended."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from symphony_charts.local import up
from symphony_charts.local.runs import Run, describe_process
from symphony_charts.spec.data import from_data
from symphony_charts.spec.pods import allocate
from tests.waiting import eventually


def start(folder: Path, name: str = "exp", **data: object) -> Run:
    experiment = from_data({"name": name, **data})
    run = up.up(experiment, allocate(experiment), folder=folder)
    assert run is not None
    return run


def python(program: str, **more: object) -> dict[str, object]:
    return {"command": [sys.executable, "-c", program], **more}


def log_of(run: Run, name: str) -> str:
    """Return all output of one process, without carriage returns of the terminal."""
    slot = next(item.slot for item in run.state().processes if item.name == name)
    return (run.process_dir(slot) / "log").read_text(encoding="utf-8").replace("\r\n", "\n")


def until(condition: Callable[[], bool], timeout_s: float = 60.0) -> None:
    """Wait until `condition` is true; fail the test on a timeout."""
    eventually(condition, timeout_s, "it did not happen in time")


def supervisor_pid(run: Run) -> int:
    """Return the pid of the supervisor of a run, which must be running."""
    assert run.supervisor is not None
    return run.supervisor.pid


def tmux_pid(run: Run) -> int:
    """Return the pid of the tmux server of a run, which must be running."""
    tmux = run.state().tmux
    assert tmux is not None
    return tmux.pid


def failure_of(run: Run) -> str:
    failed = run.state().failed
    assert failed is not None
    return failed.name


def wrapper_pids(run: Run) -> list[int]:
    """Return the pids of the programs in the panes of a run."""
    return [process.wrapper.pid for process in run.state().processes if process.wrapper]


def states_of(run: Run) -> list[str]:
    """Return the states of the processes of a run as text."""
    state = run.state()
    return [describe_process(process, state) for process in state.processes]


def wrapper_pid(run: Run, name: str) -> int:
    """Return the pid of the program in the pane of one process, once there is one."""
    found: list[int] = []

    def has_begun() -> bool:
        found[:] = [one.wrapper.pid for one in run.state().processes if one.name == name and one.wrapper]
        return bool(found)

    until(has_begun)
    return found[0]
