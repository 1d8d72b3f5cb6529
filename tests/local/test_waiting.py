"""Every verb reports the conditions a process waits for, also to commands that wait for the run."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from symphony_charts.backend.diagnosis import diagnose_instance
from symphony_charts.formats.yaml_write import dump
from symphony_charts.local import up
from symphony_charts.local.machine.machine import plan_here
from symphony_charts.local.run_files import write_identity
from symphony_charts.local.run_state import RunState, unstarted, write_record
from symphony_charts.local.runs import Run, live_runs
from symphony_charts.local.status import run_status, wait_words
from symphony_charts.spec.data import from_data
from symphony_charts.spec.pods import allocate
from tests.local.records import process_state
from tests.local.runs import until

# The learner dials the server, and comes after the step `data`.
DATA: dict[str, Any] = {
    "name": "rl",
    "processes": {
        "replay": {"command": ["sleep", "1000"], "binds": {"replay-server": 7003}},
        "data": {"command": ["true"]},
        "learner": {"command": ["true"], "connects": ["replay-server"], "after": ["data"]},
    },
}


def words_of(folder: Path, phases: dict[str, str], **local: object) -> str:
    """Return the reported state of the learner when the others are in these phases."""
    experiment = from_data({**DATA, "local": local})
    plan = plan_here(experiment, allocate(experiment), folder, "r")
    processes = [process_state(phases.get(one.name, "waiting"), one.slot, name=one.name) for one in plan.processes]
    learner = next(process.slot for process in processes if process.name == "learner")
    return wait_words(learner, RunState(phase="running", started=0.0, processes=processes), plan)


def test_a_dialling_process_names_service_port_and_process(tmp_path: Path) -> None:
    assert words_of(tmp_path, {"data": "done"}) == "waits for replay-server:7003 of replay"


def test_who_waits_for_several_names_one_and_counts_the_others(tmp_path: Path) -> None:
    assert words_of(tmp_path, {}) == "waits for data to succeed and 1 more"


def test_together_nobody_waits_for_whom_it_dials_but_for_what_it_comes_after(tmp_path: Path) -> None:
    assert words_of(tmp_path, {}, start="together") == "waits for data to succeed"
    assert words_of(tmp_path, {"data": "done"}, start="together") == ""


def test_a_long_wait_is_a_reason_and_a_warning(tmp_path: Path) -> None:
    experiment = from_data(DATA)
    plan = plan_here(experiment, allocate(experiment), tmp_path, "r")
    processes = [unstarted(process) for process in plan.processes]
    state = RunState(phase="running", started=time.time() - 40, processes=processes)
    run = Run(tmp_path / "rl" / "r")
    run.folder.mkdir(parents=True)
    write_identity(run.folder)
    write_record(run.folder / "plan.json", replace(plan, files=()))
    write_record(run.folder / "state.json", state)
    status = run_status(run)
    learner = next(instance for instance in status.instances if instance.name == "learner")
    assert (learner.phase, learner.state[:36]) == ("pending", "waits for data to succeed and 1 more")
    assert learner.reason == learner.state
    found = diagnose_instance(status, learner)
    assert found
    assert (found.cause, found.paths) == ("order", ("learner",))
    assert [(event.kind, event.about) for event in status.events if event.reason == "Waiting"] == [
        ("Warning", "Process/learner")
    ]


@pytest.mark.usefixtures("here")
def test_whoever_waits_for_a_run_is_told_who_waits_for_whom(tmp_path: Path) -> None:
    (tmp_path / "rl.yaml").write_text(dump(DATA))
    main = "import sys; from symphony_charts.cli.main import main; sys.exit(main(sys.argv[1:]))"
    argv = [sys.executable, "-c", main, "up", str(tmp_path / "rl.yaml"), "--wait"]
    with (tmp_path / "said").open("wb") as said, subprocess.Popen(argv, stderr=said, env=os.environ) as waiting:
        until(lambda: "waits for replay-server:7003 of replay" in (tmp_path / "said").read_text())
        up.down(live_runs()[0])
        assert waiting.wait() == 1
