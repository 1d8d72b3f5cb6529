"""The files of a run survive disk faults and manual changes, or the damage is limited to one run."""

from __future__ import annotations

import copy
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from subprocess import CompletedProcess
from types import MappingProxyType

import pytest
from msgspec.structs import replace

from symphony_charts.backend.diagnosis import Diagnosis, diagnose_status
from symphony_charts.cli.main import main
from symphony_charts.errors import Conflict, ToolFailed
from symphony_charts.local import up as local_run
from symphony_charts.local.backend import LocalWatcher
from symphony_charts.local.history import removable
from symphony_charts.local.run_files import write_json
from symphony_charts.local.run_state import RunPhase, write_record
from symphony_charts.local.runs import Run, live_runs
from symphony_charts.local.status import run_status
from symphony_charts.local.supervisor import shutdown
from symphony_charts.system.processes import identify, read_stat
from tests.damage import ODD, places, spoil
from tests.local.runs import log_of, python, start, supervisor_pid, tmux_pid, until, wrapper_pids
from tests.waiting import is_alive

pytestmark = pytest.mark.usefixtures("here")

MAIN = "import sys; from symphony_charts.cli.main import main; sys.exit(main(sys.argv[1:]))"
SAY = python("print('hello', flush=True); input()", grace_period=1)
DAMAGE = ["", '{"phase": "run', "{}", "[]", '{"phase": "running", "started": 1, "processes": [{}]}']


def symph(*words: str, cwd: Path, env: Mapping[str, str | None] = MappingProxyType({})) -> CompletedProcess[str]:
    """Run the command; `env` is laid over the environment, None removing a variable."""
    full = {name: value for name, value in {**os.environ, **env}.items() if value is not None}
    argv = [sys.executable, "-c", MAIN, *words]
    return subprocess.run(argv, cwd=cwd, env=full, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "exp.yaml"
    path.write_text(
        json.dumps({"name": "exp", "local": {"tty": False}, "processes": {"a": {"command": ["sleep", "300"]}}})
    )
    return path


def cause_of(run: Run) -> str:
    """Return the cause that `symph status` prints."""
    found = diagnose_status(run_status(run))
    return found.cause if found else ""


@pytest.mark.parametrize("text", DAMAGE)
@pytest.mark.parametrize("is_supervised", [True, False])
def test_a_damaged_state_spoils_one_run_which_down_still_ends(text: str, is_supervised: bool, tmp_path: Path) -> None:
    spoilt, other = start(tmp_path, "spoilt", processes={"a": SAY}), start(tmp_path, "other", processes={"a": SAY})
    [wrapper] = wrapper_pids(spoilt)
    if not is_supervised:
        os.kill(supervisor_pid(spoilt), signal.SIGKILL)
        until(lambda: not spoilt.is_supervised)
    (spoilt.folder / "state.json").write_text(text)
    phases = {status.name: status.phase for status in LocalWatcher().experiments()}
    assert phases == {"spoilt": "damaged", "other": "running"}
    note = run_status(spoilt).note
    assert note.startswith('state.json of a run of "spoilt" is damaged: ')
    assert "symph down spoilt" in note
    assert cause_of(spoilt) == "damaged"
    local_run.down(spoilt)
    assert not is_alive(wrapper)
    assert live_runs() == [other]
    assert run_status(spoilt).ended is not None
    again = start(tmp_path, "spoilt", processes={"a": SAY})
    assert run_status(again).phase == "running"


def test_a_damaged_plan_is_ended_as_well(tmp_path: Path) -> None:
    run = start(tmp_path, processes={"a": SAY})
    os.kill(supervisor_pid(run), signal.SIGKILL)
    (run.folder / "plan.json").write_text("")
    assert run_status(run).phase == "damaged"
    local_run.down(run)
    assert live_runs() == []


def test_a_damaged_run_is_ended_if_its_supervisor_dies_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = start(tmp_path, processes={"a": SAY})
    os.kill(supervisor_pid(run), signal.SIGKILL)
    until(lambda: not run.is_supervised)
    (run.folder / "plan.json").write_text("")
    answers = iter([True])
    monkeypatch.setattr(Run, "is_supervised", property(lambda _: next(answers, False)))
    local_run.down(run)
    assert live_runs() == []


@pytest.mark.parametrize("is_supervised", [True, False])
@pytest.mark.parametrize("name", ["identity.json", "supervisor.json", "state.json", "plan.json"])
def test_a_live_run_with_one_damaged_file_is_no_lost_one_and_down_ends_it(
    name: str, is_supervised: bool, tmp_path: Path
) -> None:
    run, other = start(tmp_path, processes={"a": SAY}), start(tmp_path, "other", processes={"a": SAY})
    supervisor, [wrapper] = supervisor_pid(run), wrapper_pids(run)
    if not is_supervised:
        os.kill(supervisor, signal.SIGKILL)
        until(lambda: not run.is_supervised)
    (run.folder / name).write_text("")
    assert live_runs() == [run, other]
    with pytest.raises(Conflict):
        local_run.mark_run_lost(run)
    assert removable([run, other], keep=0) == []
    local_run.down(run)
    assert [pid for pid in (supervisor, wrapper) if is_alive(pid)] == []
    assert (run.members(), live_runs()) == ([], [other])
    assert run_status(start(tmp_path, processes={"a": SAY})).phase == "running"


_LOOKS = (["ps", "exp"], ["ls", "-o", "json"], ["describe", "exp"], ["logs", "exp"], ["status", "exp"])


@pytest.mark.parametrize("name", ["state.json", "plan.json"])
def test_whatever_a_file_of_a_run_holds_no_look_ends_in_an_error_of_python(name: str, tmp_path: Path) -> None:
    more = {"b": {"command": ["true"]}, "s": {**python("input()"), "binds": "s", "ready": "none"}}
    run = start(tmp_path, processes={"a": python("input()"), **more})
    until(lambda: run.state().processes[1].phase == "done")
    whole, draw = json.loads((run.folder / name).read_text()), random.Random(7)
    for _ in range(60):
        damaged = copy.deepcopy(whole)
        holder, key = draw.choice(places(damaged))
        if isinstance(holder, dict) and draw.random() < 0.3:
            del holder[key]
        else:
            spoil(holder, key, draw.choice(ODD))
        write_json(run.folder / name, damaged)
        statuses = [(look[0], _status_of(look)) for look in _LOOKS]
        assert [verb for verb, status in statuses if status == 70] == [], damaged
    write_json(run.folder / name, whole)


def _status_of(words: Sequence[str]) -> int:
    try:
        return main(list(words))
    except SystemExit as ended:
        return int(ended.code or 0)


def test_the_state_of_another_experiment_is_damage(tmp_path: Path) -> None:
    run, other = start(tmp_path, "one", processes={"a": SAY}), start(tmp_path, "two", processes={"a": SAY})
    (run.folder / "state.json").write_bytes((other.folder / "state.json").read_bytes())
    with pytest.raises(ToolFailed, match='it belongs to experiment "two"'):
        run.state()


def test_a_run_that_ends_between_two_looks_ended_as_its_supervisor_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = start(tmp_path, processes={"a": {"cmds": ["until [ -e go ]; do sleep 0.1; done"]}})

    def gone(run: Run) -> None:
        (tmp_path / "go").touch()
        until(lambda: not is_alive(supervisor))

    supervisor = supervisor_pid(run)
    monkeypatch.setattr(Run, "supervisor", property(gone))
    status = run_status(run)
    assert (status.phase, [instance.phase for instance in status.instances]) == ("succeeded", ["succeeded"])


def test_looking_at_a_run_without_a_supervisor_starts_none_and_says_so(tmp_path: Path) -> None:
    run = start(tmp_path, processes={"a": SAY, "b": SAY})
    os.kill(supervisor_pid(run), signal.SIGKILL)
    until(lambda: not run.is_supervised)
    os.kill(wrapper_pids(run)[1], signal.SIGKILL)
    until(lambda: LocalWatcher().describe("exp").instances[1].phase == "failed")
    status = LocalWatcher().describe("exp")
    assert status.note.startswith("its supervisor has died, so its processes do not restart")
    assert diagnose_status(status) == Diagnosis(
        cause="supervisor",
        text="its supervisor has died, so its processes do not restart",
        next=status.note.partition("; ")[2],
    )
    assert [instance.state.partition(" ")[0] for instance in status.instances] == ["running", "ended"]
    assert not run.is_supervised
    local_run.ensure_supervised(run)
    assert run.is_supervised


def test_ten_at_once_give_one_run_and_clear_answers(tmp_path: Path, spec: Path) -> None:
    argv = [sys.executable, "-c", MAIN, "up", str(spec)]
    with_pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    programs = [subprocess.Popen(argv, **with_pipes) for _ in range(10)]  # type: ignore[call-overload]  # options in a map
    answers = [(*program.communicate(timeout=120), program.returncode) for program in programs]
    assert [run.experiment for run in live_runs()] == ["exp"]
    assert all(status in (0, 7) for _, _, status in answers), answers
    assert all(
        "another command is changing experiment" in err and ": symph up (pid" in err
        for _, err, status in answers
        if status == 7
    ), answers
    [run] = live_runs()
    local_run.down(run)
    assert live_runs() == []


@pytest.mark.parametrize("victim", ["supervisor", "tmux"])
def test_down_ends_what_was_stopped_by_hand_at_once(victim: str, tmp_path: Path) -> None:
    run = start(tmp_path, processes={"a": SAY})
    pid = supervisor_pid(run) if victim == "supervisor" else tmux_pid(run)
    os.kill(pid, signal.SIGSTOP)
    until(lambda: bool((stat := read_stat(pid)) and stat.is_stopped))
    local_run.down(run)
    assert not is_alive(pid)
    assert run.state().survivors == []


def test_restart_goes_on_with_a_supervisor_that_was_stopped_by_hand(tmp_path: Path) -> None:
    run = start(tmp_path, processes={"a": SAY})
    pid, before = supervisor_pid(run), wrapper_pids(run)
    os.kill(pid, signal.SIGSTOP)
    until(lambda: bool((stat := read_stat(pid)) and stat.is_stopped))
    local_run.restart(run, [0])
    assert wrapper_pids(run) != before


def test_a_stopped_supervisor_is_told_to_whoever_looks(tmp_path: Path) -> None:
    run = start(tmp_path, processes={"a": SAY})
    os.kill(pid := supervisor_pid(run), signal.SIGSTOP)
    until(lambda: f"kill -CONT {pid}" in run_status(run).note)
    assert cause_of(run) == "supervisor"
    os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("phase", ["starting", "running"])
def test_a_run_whose_processes_are_done_has_not_ended_before_its_logs_are_written(
    phase: RunPhase, tmp_path: Path
) -> None:
    run = start(tmp_path, processes={"a": SAY, "b": SAY})
    os.kill(pid := supervisor_pid(run), signal.SIGSTOP)
    until(lambda: bool((stat := read_stat(pid)) and stat.is_stopped))
    # The state that a supervisor writes while other processes of the run are still being started.
    before = run.state()
    done = [replace(process, phase="done", status=0, ended=time.time()) for process in before.processes]
    write_record(run.folder / "state.json", replace(before, phase=phase, processes=done))
    assert run_status(run).phase == "stopping"
    write_record(run.folder / "state.json", before)
    os.kill(pid, signal.SIGCONT)


def test_down_kills_a_supervisor_that_hears_nothing_and_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutdown, "_HUNG_S", 1.0)
    run = start(tmp_path, processes={"a": SAY})
    [wrapper] = wrapper_pids(run)
    os.kill(supervisor_pid(run), signal.SIGKILL)
    # A supervisor that hangs: it exists and ignores all signals and requests.
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); signal.pause()"
    with subprocess.Popen([sys.executable, "-c", deaf], stdout=subprocess.PIPE) as hangs:
        assert hangs.stdout is not None
        hangs.stdout.readline()
        record = identify(hangs.pid)
        assert record is not None
        (run.folder / "supervisor.json").write_text(json.dumps(asdict(record)))
        assert supervisor_pid(run) == hangs.pid
        local_run.down(run)
        assert not is_alive(hangs.pid)
    assert f"killed its supervisor (pid {hangs.pid}), which did not react" in capfd.readouterr().err
    assert (run.state().phase, run.state().survivors) == ("stopped", [])
    assert not is_alive(wrapper)


def test_what_outlives_tmux_and_supervisor_of_a_damaged_run_is_seen_and_ended(tmp_path: Path) -> None:
    deaf = python(
        "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN); print('on', flush=True); signal.pause()"
    )
    run = start(tmp_path, processes={"a": deaf})
    until(lambda: "on" in log_of(run, "a"))
    program = run.main_process(run.state().processes[0])
    assert program is not None
    os.kill(supervisor_pid(run), signal.SIGKILL)
    os.kill(tmux_pid(run), signal.SIGKILL)
    (run.folder / "state.json").write_text("")
    until(lambda: not run.is_supervised)
    assert [each.folder for each in live_runs()] == [run.folder]
    local_run.down(run)
    assert (is_alive(program.pid), live_runs()) == (False, [])


def test_down_says_what_it_waits_for(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    stubborn = python(
        "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); input()"
    )
    run = start(tmp_path, processes={"a": {**stubborn, "grace_period": 3}})
    until(lambda: "ready" in log_of(run, "a"))
    local_run.down(run)
    told = capfd.readouterr().err
    # On a busy machine the supervisor may not have reached it by then, which is reported as well.
    assert re.fullmatch(r"exp: waiting for (a to end, killed after 3 s|its supervisor .*)\n", told), told


@pytest.mark.parametrize("place", ["a relative place", "with a space", "José", "home"])
def test_a_state_folder_may_be_called_as_people_call_folders(place: str, private_places: Path, spec: Path) -> None:
    chosen: dict[str, str | None] = {
        "a relative place": "state-here",
        "with a space": str(private_places / "my state"),
        "José": str(private_places / "José" / "état"),
        "home": None,
    }
    env = {"SYMPH_STATE_DIR": chosen[place], "HOME": str(private_places / "a home")}
    up = symph("up", str(spec), cwd=private_places, env=env)
    assert up.returncode == 0, up.stderr
    assert "running" in symph("p", "exp", cwd=private_places, env=env).stdout
    down = symph("down", "exp", cwd=private_places, env=env)
    assert down.returncode == 0, down.stderr


REFUSALS: dict[str, tuple[str, str]] = {
    "limit of file sizes": ("ulimit -f 1", "file too large"),
    "read-only": ('mount -t tmpfs none "$SYMPH_STATE_DIR" && mount -o remount,ro "$SYMPH_STATE_DIR"', "read-only"),
    "full": (
        'mount -t tmpfs -o size=16k none "$SYMPH_STATE_DIR" && dd if=/dev/zero of="$SYMPH_STATE_DIR/x" 2>/dev/null',
        "no space",
    ),
}


@pytest.mark.parametrize("fault", list(REFUSALS))
def test_what_cannot_be_written_is_refused_and_leaves_nothing(
    fault: str, private_places: Path, spec: Path, need_tool: Callable[[str], str]
) -> None:
    need_tool("unshare")
    if os.geteuid() != 0:
        pytest.skip("only root can mount a file system that is full")
    (private_places / "state").mkdir()
    prepare, words = REFUSALS[fault]
    look = f'{prepare}; "$@"; status=$?; find "$SYMPH_STATE_DIR/local" -mindepth 1 -name "20*"; exit $status'
    argv = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc"]
    done = subprocess.run(
        [*argv, "sh", "-c", look, "sh", sys.executable, "-c", MAIN, "up", str(spec)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 6, (done.stdout, done.stderr)
    assert words in done.stderr.lower()
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_full_disk_costs_news_and_no_process(private_places: Path, tmp_path: Path) -> None:
    run = start(tmp_path, processes={"a": SAY})
    state = run.folder / "state.json"
    # A folder in its place refuses the rename as a full disk refuses the write; both are retried.
    text = state.read_text()
    state.unlink()
    state.mkdir()
    os.kill(wrapper_pids_in(text)[0], signal.SIGKILL)
    until(lambda: "cannot write" in (run.folder / "supervisor.log").read_text())
    assert run.is_supervised
    state.rmdir()
    until(lambda: state.is_file() and not run.is_live)
    assert "cannot write state.json of a run" in (run.folder / "supervisor.log").read_text()


def wrapper_pids_in(text: str) -> list[int]:
    return [int(item["wrapper"]["pid"]) for item in json.loads(text)["processes"]]


def test_two_runs_of_one_name_are_both_seen_and_both_ended(tmp_path: Path) -> None:
    run = start(tmp_path, processes={"a": SAY})
    later = run.folder.parent / "99999999-000000-000000"
    later.mkdir()
    (later / "state.json").write_text(json.dumps({"phase": "finished", "started": 1.0, "ended": 2.0, "processes": []}))
    assert live_runs() == [run]
    assert LocalWatcher().describe("exp").run == run.run_id
    local_run.down(Run(run.folder))
    assert live_runs() == []
