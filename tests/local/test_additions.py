"""Processes are added to a running experiment, taken out of it, stopped, started and scaled, and the others go on."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from symphony_charts.cli.main import main
from symphony_charts.errors import Conflict
from symphony_charts.local import up as local_run
from symphony_charts.local.runs import Run
from symphony_charts.local.status import run_status
from symphony_charts.local.supervisor.requests import requested
from symphony_charts.spec.data import from_data
from symphony_charts.spec.pods import allocate
from tests.local.runs import log_of, python, start, supervisor_pid, until
from tests.waiting import is_alive

pytestmark = pytest.mark.usefixtures("here")

STAY = python("import os; print('up', os.environ['SYMPH_REPLICAS'], flush=True); input()", grace_period=1)
SERVE = {"cmds": ["exec python3 -m http.server $$SYMPH_BOARD_PORT --bind $$SYMPH_BOARD_BIND_HOST"], "binds": "board"}


def pids(run: Run) -> dict[str, int]:
    """Return the pids of the running processes by name."""
    return {item.name: item.wrapper.pid for item in run.state().processes if item.phase == "running" and item.wrapper}


def phases(run: Run) -> dict[str, str]:
    return {instance.name: instance.phase for instance in run_status(run).instances}


def test_up_adds_a_process_and_a_service_and_takes_them_out_again(tmp_path: Path) -> None:
    few: dict[str, Any] = {"b": STAY, "c": STAY}
    run = start(tmp_path, processes=few)
    before = pids(run)
    assert start(tmp_path, processes={"a": {**STAY, "connects": "board"}, "board": SERVE, **few}) == run
    until(lambda: set(phases(run).values()) == {"running"} and len(phases(run)) == 4)
    until(lambda: run_status(run).instances[-1].ready)
    assert {name: pid for name, pid in pids(run).items() if name in before} == before
    until(lambda: "up 1" in log_of(run, "a"))
    added = pids(run)
    assert start(tmp_path, processes=few) == run
    assert phases(run) == {"b": "running", "c": "running"}
    assert [name for name in ("a", "board") if is_alive(added[name])] == []
    assert pids(run) == before
    local_run.down(run)
    assert (run.members(), run.state().phase) == ([], "stopped")


@pytest.mark.parametrize("is_supervised", [True, False])
def test_replicas_are_added_and_removed_while_the_others_run(tmp_path: Path, is_supervised: bool) -> None:
    run = start(tmp_path, processes={"agent": STAY, "z": STAY})
    before = pids(run)
    if not is_supervised:
        os.kill(supervisor_pid(run), signal.SIGKILL)
        until(lambda: not run.is_supervised)
    assert main(["scale", "agent=3", "exp"]) == 0
    assert list(pids(run)) == ["agent", "z", "agent-1", "agent-2"]
    assert {**pids(run), **before} == pids(run)
    addresses = [instance.place for instance in run_status(run).instances]
    assert len(set(addresses)) == 4
    until(lambda: "up 3" in log_of(run, "agent-1"))
    assert main(["scale", "agent=1", "exp"]) == 0
    assert pids(run) == before
    assert main(["scale", "agent=2", "exp"]) == 0
    assert list(pids(run)) == ["agent", "z", "agent-1"]
    assert [instance.place for instance in run_status(run).instances] == addresses[:3]
    until(lambda: log_of(run, "agent-1").split() == ["up", "3", "up", "2"])


def test_one_process_is_stopped_and_started_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = start(tmp_path, processes={"a": STAY, "b": STAY})
    before = pids(run)
    assert main(["stop", "a", "exp", "-o", "json"]) == 0
    assert [item["name"] for item in json.loads(capsys.readouterr().out)["items"]] == ["a"]
    assert (phases(run), is_alive(before["a"])) == ({"a": "stopped", "b": "running"}, False)
    # A supervisor that takes over leaves it stopped.
    os.kill(supervisor_pid(run), signal.SIGKILL)
    until(lambda: not run.is_supervised)
    local_run.ensure_supervised(run)
    assert phases(run) == {"a": "stopped", "b": "running"}
    assert main(["start", "a", "exp"]) == 0
    assert (phases(run), pids(run)["b"]) == ({"a": "running", "b": "running"}, before["b"])
    assert main(["stop", "a", "b", "exp"]) == 0
    assert (run.is_live, run_status(run).phase) == (True, "stopped")
    assert start(tmp_path, processes={"a": STAY, "b": STAY}) == run
    assert phases(run) == {"a": "running", "b": "running"}


def test_scale_leaves_stopped_processes_stopped_and_watched_ones_watched(tmp_path: Path) -> None:
    experiment = from_data({"name": "exp", "processes": {"agent": STAY, "z": STAY}})
    run = local_run.up(experiment, allocate(experiment), folder=tmp_path, watched=["agent"])
    assert run is not None
    for _ in range(2):
        assert main(["stop", "z", "exp"]) == 0
    assert main(["scale", "agent=2", "exp"]) == 0
    assert phases(run) == {"agent": "running", "z": "stopped", "agent-1": "running"}
    assert [process.on_failure for process in run.plan().processes] == ["wait", "stop", "wait"]
    os.kill(pids(run)["agent-1"], signal.SIGKILL)
    until(lambda: phases(run)["agent-1"] == "failed")
    assert (run_status(run).phase, run_status(run).phase_text) == ("running", "running (1 failed)")
    assert main(["scale", "agent=1", "exp"]) == 0
    assert (phases(run), run_status(run).phase_text) == ({"agent": "running", "z": "stopped"}, "running")


def test_a_process_with_the_name_of_a_running_replica_needs_a_new_run(tmp_path: Path) -> None:
    run = start(tmp_path, processes={"agent": {**STAY, "replicas": 2}})
    with pytest.raises(Conflict, match=r"two replicas would be named agent-1"):
        start(tmp_path, processes={"agent": {**STAY, "replicas": 2}, "agent-1": STAY})
    assert phases(run) == {"agent-0": "running", "agent-1": "running"}


def test_a_request_may_be_withdrawn_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(tmp_path)
    (tmp_path / "again").mkdir()
    (tmp_path / "again" / "1").write_text("stop")
    gone = tmp_path / "again" / "0"
    monkeypatch.setattr(Path, "iterdir", lambda folder: iter([gone, folder / "1"]))
    assert requested(run) == {1: "stop"}


def test_a_process_that_waits_is_stopped_and_one_that_runs_is_not_started_twice(tmp_path: Path) -> None:
    run = start(tmp_path, processes={"a": STAY, "b": {**STAY, "after": "a"}})
    before = pids(run)
    assert main(["stop", "b", "exp"]) == 0
    assert main(["start", "a", "exp"]) == 0
    assert (phases(run), pids(run)) == ({"a": "running", "b": "stopped"}, before)
    local_run.down(run)
    assert run.members() == []
