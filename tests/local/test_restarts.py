"""Reactions to the end of a process in real tmux: the run stops, continues, or restarts it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from symphony_charts.local import tmux_client
from symphony_charts.local import up as local_run
from symphony_charts.local.history import past_run
from symphony_charts.local.plan.records import Backoff
from symphony_charts.local.run_state import write_record
from symphony_charts.local.runs import Run
from symphony_charts.local.status import run_events, run_status
from tests.local.runs import log_of, python, start, states_of, supervisor_pid, until
from tests.waiting import is_alive

pytestmark = pytest.mark.usefixtures("here")

FAIL = python("print('try', flush=True); raise SystemExit(5)")
SOON = python("import time; time.sleep(0.7)")
FOREVER = python("input()")
# Records its start time, and fails.
TIMED = "import time; print(time.time(), flush=True); time.sleep({}); raise SystemExit(1)"
# Ends successfully, slowly.
SLOW = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (time.sleep(1.5), sys.exit(0)))
print('up', flush=True)
time.sleep(60)
"""


def phases(run: Run) -> list[str]:
    return [item.phase for item in run.state().processes]


def quicker(run: Run, **backoff: float) -> None:
    """Give the run a supervisor with other delays between restarts."""
    os.kill(supervisor_pid(run), signal.SIGKILL)
    until(lambda: not run.is_supervised)
    write_record(run.folder / "plan.json", replace(run.plan(), backoff=Backoff(**backoff)))
    local_run.ensure_supervised(run)


@pytest.mark.parametrize(
    ("others", "on_failure", "expected"),
    [
        pytest.param({"b": FOREVER}, "stop", ["failed", "stopped"], id="a failure stops all"),
        pytest.param({"b": SOON}, "continue", ["failed", "done"], id="with continue the others go on"),
        pytest.param(
            {"s": {**FOREVER, "lifecycle": "service"}},
            "continue",
            ["failed", "stopped"],
            id="with continue services do not hold up the end",
        ),
        pytest.param(
            {"b": {**FOREVER, "after": "a"}, "c": {**FOREVER, "after": "b"}},
            "continue",
            ["failed", "stopped", "stopped"],
            id="with continue those that wait for a failed process do not hold up the end",
        ),
    ],
)
def test_a_failure_ends_the_run_as_on_failure_asks(
    others: dict[str, object], on_failure: str, expected: list[str], tmp_path: Path
) -> None:
    run = start(tmp_path, processes={"a": FAIL, **others}, on_failure=on_failure)
    assert local_run.wait(run) == 5
    assert (phases(run), run.state().phase) == (expected, "failed")


TRY = "import os; print(os.environ.get('SYMPH_ATTEMPT'), flush=True); raise SystemExit({})"


_COUNTING = """
import os
number = int(os.environ["SYMPH_ATTEMPT"])
raise SystemExit(11 + number)
"""


def test_earlier_tries_are_kept_with_their_statuses_and_causes(tmp_path: Path) -> None:
    run = start(tmp_path, processes={"a": {**python(_COUNTING), "retries": 2}, "b": FOREVER}, on_failure="continue")
    quicker(run, base_s=0.1)
    until(lambda: phases(run)[0] == "failed")
    status = run_status(run)
    assert (status.phase, status.phase_text, status.is_final) == ("running", "running (1 failed)", False)
    first, *others = status.instances[0].tries
    assert [one.status for one in (first, *others)] == [11, 12, 13]
    assert all(one.started and one.started <= one.ended for one in (first, *others))
    with (run.process_dir(0) / "tries.jsonl").open("ab") as file:
        file.write(b'{"ended": "x"}\nhalf')
    local_run.down(run)
    failures = [event.message for event in run_events(run) if event.reason == "Failed"]
    assert failures == ["exit status 11", "exit status 12", "exit status 13"]
    tries = past_run(run)["tries"]
    assert [len(tries[name]) for name in ("a", "b")] == [3, 1]
    assert tries["b"][0]["cause"] == "stopped"


@pytest.mark.parametrize("restart", ["never", "on-failure"])
def test_n_retries_are_n_further_tries_that_know_their_number(tmp_path: Path, restart: str) -> None:
    run = start(tmp_path, processes={"a": {**python(TRY.format(4)), "retries": 2, "restart": restart}})
    quicker(run, base_s=0.1)
    assert local_run.wait(run) == 4
    assert log_of(run, "a").split() == ["0", "1", "2"]


def test_a_process_started_again_by_hand_begins_to_count_afresh(tmp_path: Path) -> None:
    again = "import os, time; print(os.environ['SYMPH_ATTEMPT'], flush=True); time.sleep(0.2)"
    once = "if not os.path.exists('n'): open('n', 'w').close(); raise SystemExit(1)"
    run = start(tmp_path, processes={"a": {**python(f"{again}\n{once}\ntime.sleep(60)"), "retries": 3}})
    quicker(run, base_s=0.1)
    until(lambda: log_of(run, "a").split() == ["0", "1"])
    local_run.restart(run, [0])
    until(lambda: log_of(run, "a").split() == ["0", "1", "0"])


def test_a_service_knows_of_tries_only_in_a_pod_that_ends(tmp_path: Path) -> None:
    service = {**python(TRY.format(0)), "lifecycle": "service"}
    groups = {"g": {"processes": {"sidecar": service, "ends": FOREVER}}}
    run = start(tmp_path, processes={"s": service, "b": FOREVER}, groups=groups)
    until(lambda: log_of(run, "s").startswith("None\n"))
    until(lambda: log_of(run, "sidecar").startswith("0\n0\n"))


def test_a_deadline_fails_a_process_whatever_retries_it_has(tmp_path: Path) -> None:
    polite = "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); time.sleep(60)"
    run = start(tmp_path, processes={"a": {**python(polite), "retries": 5, "deadline": 4}})
    began = time.monotonic()
    assert local_run.wait(run) == 1
    assert time.monotonic() - began < 20
    assert run.state().processes[0].restarts == 0


def test_a_supervisor_that_takes_over_restarts_what_waits_for_that(tmp_path: Path) -> None:
    run = start(tmp_path, processes={"a": {**python(TIMED.format(0)), "retries": 1}})
    until(lambda: phases(run) == ["backoff"])
    os.kill(supervisor_pid(run), signal.SIGKILL)
    assert local_run.wait(run) == 1
    assert len(log_of(run, "a").split()) == 2


def test_a_supervisor_that_takes_over_goes_on_with_the_end(tmp_path: Path) -> None:
    run = start(tmp_path, processes={"a": {**python(SLOW), "retries": 9}})
    until(lambda: "up" in log_of(run, "a"))
    supervisor = supervisor_pid(run)
    os.kill(supervisor, signal.SIGTERM)
    until(lambda: run.state().phase == "stopping")
    os.kill(supervisor, signal.SIGKILL)
    until(lambda: not is_alive(supervisor))
    local_run.wait(run)
    assert run.state().reason == "stopped"
    assert phases(run) == ["done"]


def test_without_tmux_nothing_is_started_again_and_the_run_ends(tmp_path: Path) -> None:
    stays = python("import signal, time; signal.signal(signal.SIGHUP, signal.SIG_IGN); time.sleep(60)")
    run = start(tmp_path, processes={"a": {**FAIL, "retries": 3}, "b": {**stays, "grace_period": 1}})
    until(lambda: phases(run)[0] == "backoff")
    os.kill(tmux_client.server_pid(run.socket), signal.SIGKILL)
    assert local_run.wait(run) == 1
    assert (run.state().cause, run.state().failed, run.state().survivors) == ("tmux was killed", None, [])


def test_a_killed_tmux_is_the_cause_and_not_the_process_that_could_not_print(tmp_path: Path) -> None:
    prints = python("import time\nwhile True: print('on', flush=True); time.sleep(0.01)", restart="never")
    run = start(tmp_path, processes={"agent": {**prints, "replicas": 3, "grace_period": 1}})
    until(lambda: all("on" in log_of(run, f"agent-{number}") for number in range(3)))
    os.kill(tmux_client.server_pid(run.socket), signal.SIGKILL)
    assert local_run.wait(run) == 1
    assert [text.partition(" after")[0] for text in states_of(run)] == ["stopped"] * 3
    assert all(text.endswith("(tmux was killed)") for text in states_of(run))


def test_tmux_killed_while_nobody_watched_is_the_cause_as_well(tmp_path: Path) -> None:
    run = start(tmp_path, processes={"a": FOREVER})
    supervisor, server = supervisor_pid(run), tmux_client.server_pid(run.socket)
    for pid in (supervisor, server):
        os.kill(pid, signal.SIGKILL)
        until(lambda: not is_alive(pid))  # noqa: B023 - it is waited for at once
    assert local_run.wait(run) == 1
    assert run.state().cause == "tmux was killed"


def test_a_run_that_is_over_at_its_start_lives_until_its_logs_are_written(tmp_path: Path) -> None:
    short = {"command": ["sh", "-c", "echo last words; exit 3"], "restart": "never"}
    for _ in range(5):
        run = start(tmp_path, processes={f"p{number}": short for number in range(12)}, on_failure="continue")
        local_run.wait(run)
        assert run.state().ended is not None
        assert [log_of(run, f"p{number}") for number in range(12)] == ["last words\n"] * 12


@pytest.mark.parametrize("count", [1, 2])
def test_a_closed_pane_is_told_and_a_process_that_restarts_gets_another(tmp_path: Path, count: int) -> None:
    prints = python("import time\nfor _ in range(6000): print('on', flush=True); time.sleep(0.01)", retries=3)
    run = start(tmp_path, processes={f"p{number}": prints for number in range(count)})
    quicker(run, base_s=1.0)
    until(lambda: "on" in log_of(run, "p0"))
    _close_pane(run, 0)
    until(lambda: phases(run)[0] == "backoff")
    assert "(its pane was closed)" in states_of(run)[0]
    until(lambda: phases(run) == ["running"] * count)
    size = len(log_of(run, "p0"))
    until(lambda: len(log_of(run, "p0")) > size)


def test_a_pane_closed_while_nobody_watched_is_no_killed_tmux(tmp_path: Path) -> None:
    prints = python("import time\nfor _ in range(6000): print('on', flush=True); time.sleep(0.01)", retries=3)
    run = start(tmp_path, processes={"a": prints})
    quicker(run, base_s=3.0)
    server = tmux_client.server_pid(run.socket)
    os.kill(supervisor_pid(run), signal.SIGKILL)
    until(lambda: not run.is_supervised)
    _close_pane(run, 0)
    local_run.ensure_supervised(run)
    assert "(its pane was closed)" in states_of(run)[0]
    until(lambda: phases(run) == ["running"])
    size = len(log_of(run, "a"))
    until(lambda: len(log_of(run, "a")) > size)
    assert tmux_client.server_pid(run.socket) == server


def test_without_a_restart_a_closed_pane_is_why_the_run_failed(tmp_path: Path) -> None:
    run = start(tmp_path, processes={"a": {"command": ["sleep", "300"], "restart": "never"}, "b": FOREVER})
    until(lambda: phases(run) == ["running"] * 2)
    _close_pane(run, 0)
    assert local_run.wait(run) == 143
    assert states_of(run)[0].startswith("failed 143 (its pane was closed)")
    assert phases(run) == ["failed", "stopped"]


def _close_pane(run: Run, slot: int) -> None:
    pane = next(pane.id for pane in tmux_client.list_panes(run.socket) if pane.slot == slot)
    subprocess.run(["tmux", "-S", str(run.socket), "kill-pane", "-t", pane], check=True)
