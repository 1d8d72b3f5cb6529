"""The end of a run in real tmux: what ends with it, what goes on, and what is free for other runs."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from symphony_charts.backend.status import LogQuery
from symphony_charts.cli.main import main
from symphony_charts.errors import Conflict, NotFound
from symphony_charts.local import up as local_run
from symphony_charts.local.backend import LocalWatcher
from symphony_charts.local.run_state import write_record
from symphony_charts.local.runs import Run, find_run, live_runs
from symphony_charts.local.status import run_status
from symphony_charts.local.supervisor.shutdown import mark_lost
from symphony_charts.spec.data import from_data
from symphony_charts.spec.pods import pods_of, pods_that_end
from symphony_charts.system.processes import is_running
from tests.local.ends import alive_after_end, drawn
from tests.local.nvidia import install
from tests.local.runs import log_of, python, start, supervisor_pid, until, wrapper_pid
from tests.waiting import is_alive

# `SYMPH_SOAK` is the number of drawn experiments; every tenth is also run in tmux.
CASES = int(os.environ.get("SYMPH_SOAK", "40"))
FOREVER = python("import time; time.sleep(300)")
SERVICE = {**FOREVER, "lifecycle": "service", "ready": {"exec": ["true"]}}
BOARD = {**SERVICE, "exposes": "board"}
SOON = python("import time; time.sleep(0.5)")


def alive(run: Run) -> set[str]:
    """Return the paths of the processes of a run that are there."""
    return {process.path for process in run.state().processes if is_running(process.wrapper)}


@pytest.mark.parametrize("seed", range(CASES))
def test_what_goes_on_is_what_the_spec_says(seed: int, tmp_path: Path) -> None:
    experiment = from_data(drawn(seed))
    ended = pods_that_end(experiment)
    lasting = {name for name, pod in pods_of(experiment).items() if not pod.is_finite and name not in ended}
    assert alive_after_end(drawn(seed), tmp_path) == lasting


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("seed", range(0, CASES, 10))
def test_what_goes_on_in_tmux_is_what_the_decisions_say(seed: int, tmp_path: Path) -> None:
    data = drawn(seed)
    run = start(tmp_path, **data)
    local_run.wait(run)
    expected = alive_after_end(data, tmp_path)
    assert (alive(run), set(run_status(run).still_running)) == (expected, expected)
    assert run_status(run).phase in ("succeeded", "failed")
    local_run.down(run)
    assert alive(run) == set()


@pytest.mark.usefixtures("here")
def test_after_the_end_its_result_is_known_and_a_service_goes_on_until_down(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    replay = {**SERVICE, "binds": "replay"}
    run = start(tmp_path, processes={"a": {**SOON, "connects": "replay"}, "replay": replay, "board": BOARD})
    assert local_run.wait(run) == 0
    status = run_status(run)
    assert (status.phase, status.still_running, status.ended_with_run) == ("succeeded", ("board",), ("replay",))
    assert status.ended is not None
    assert main(["status", "exp"]) == 0
    assert "here: ended with the run: replay\nhere: still runs: board\n" in capsys.readouterr().out
    assert main(["ls"]) == 0
    assert "still runs: board" in capsys.readouterr().out
    assert main(["ps", "exp"]) == 0
    assert "exp succeeded; still runs: board" in capsys.readouterr().err
    with pytest.raises(NotFound, match="has ended, and with it a"):
        local_run.restart(run, [0])
    # Who follows all lines is done; a service by its name is followed on.
    assert list(LocalWatcher().logs("exp", LogQuery(follow=True, is_one_run=True))) == []
    before = run.state().processes[2].wrapper
    local_run.restart(run, [2])
    assert run.state().processes[2].wrapper != before
    local_run.down(run)
    after = run_status(run)
    assert (after.phase, after.ended, after.still_running) == ("succeeded", status.ended, ())
    assert after.ended_with_run == ("replay",)


@pytest.mark.usefixtures("here")
def test_services_linger_after_a_failure_and_down_does_not_wait_for_them(tmp_path: Path) -> None:
    fails = python("import time; time.sleep(0.5); raise SystemExit(4)", retries=0)
    run = start(tmp_path, processes={"a": fails, "b": FOREVER, "s": SERVICE}, linger=300)
    until(lambda: run_status(run).phase == "failed")
    assert alive(run) == {"s"}
    local_run.down(run)
    assert (run.is_live, run.state().phase, local_run.exit_status(run)) == (False, "failed", 4)


@pytest.mark.usefixtures("here")
def test_up_waits_until_services_have_lingered_and_run_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps({"name": "exp", "linger": 1, "processes": {"a": SOON, "s": SERVICE, "board": BOARD}}))
    assert main(["up", str(spec), "--wait"]) == 0
    assert alive(find_run("exp")) == {"board"}
    assert "still runs: board" in capsys.readouterr().err
    assert main(["up", str(spec), "--dry-run"]) == 0
    assert "exp: its last run has ended; would end board" in capsys.readouterr().err
    assert main(["run", str(spec)]) == 0
    assert "exp: its last run has ended; ending board" in capsys.readouterr().err
    assert live_runs() == []
    assert alive(find_run("exp")) == set()


@pytest.mark.usefixtures("here")
def test_a_run_keeps_its_result_when_its_services_are_lost(tmp_path: Path) -> None:
    run = start(tmp_path, processes={"a": SOON, "board": BOARD})
    local_run.wait(run)
    state = run.state()
    local_run.down(run)
    # As after a power failure.
    write_record(run.folder / "state.json", state)
    mark_lost(run)
    status = run_status(run)
    assert (run.is_live, status.phase, status.ended, status.still_running) == (False, "succeeded", state.ended, ())
    assert status.instances[1].phase == "lost"


@pytest.mark.usefixtures("here")
def test_what_stays_of_another_folder_is_not_ended_by_up(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    processes = {"a": SOON, "board": BOARD}
    local_run.wait(start(tmp_path, processes=processes))
    with pytest.raises(Conflict, match="from another folder"):
        start(tmp_path / "other", processes=processes)
    assert alive(find_run("exp")) == {"board"}


@pytest.mark.usefixtures("here")
def test_gpus_of_what_has_ended_are_free_and_a_killed_supervisor_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, private_places: Path
) -> None:
    install(private_places, monkeypatch)
    # A child of the learner outlives it; a container's end would kill it, too.
    child = "import subprocess, time; print(subprocess.Popen(['sleep', '300']).pid, flush=True); time.sleep(0.5)"
    processes: dict[str, Any] = {
        "learner": python(child, gpus=2),
        "replay": {**SERVICE, "gpus": 1},
        "board": {**BOARD, "gpus": 1},
    }
    run = start(tmp_path, processes=processes)
    local_run.wait(run)
    assert run_status(run).ended_with_run == ("replay (1 GPU)",)
    until(lambda: not is_alive(int(log_of(run, "learner"))))
    os.kill(supervisor_pid(run), signal.SIGKILL)
    until(lambda: not run.is_supervised)
    local_run.ensure_supervised(run)
    with pytest.raises(Conflict, match='in use by experiment "exp"'):
        start(tmp_path, "four", processes={"a": {**FOREVER, "gpus": 4}})
    start(tmp_path, "three", processes={"a": {**FOREVER, "gpus": 3}})
    assert (alive(run), run_status(run).phase) == ({"board"}, "succeeded")
    os.kill(wrapper_pid(run, "board"), signal.SIGKILL)
    until(lambda: run.state().processes[2].restarts == 1 and alive(run) == {"board"})
