"""State of a run while it is being started, and requests that are refused before anything starts."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from symphony_charts.errors import ToolFailed
from symphony_charts.local import up as local_run
from symphony_charts.local.machine import machine
from symphony_charts.local.run_state import write_record
from symphony_charts.local.runs import Run, live_runs, runs_of
from symphony_charts.spec.data import from_data
from symphony_charts.spec.pods import allocate
from tests.local.runs import python, start, supervisor_pid, until

MANY = 120


@pytest.mark.usefixtures("here")
def test_a_death_during_the_start_has_its_own_time(tmp_path: Path) -> None:
    first = {"command": ["/bin/sh", "-c", "exit 3"], "restart": "never"}
    others = {f"p{number}": {"command": ["/bin/sleep", "60"]} for number in range(MANY)}
    run = start(tmp_path, processes={"first": first, **others}, on_failure="continue")
    known = run.state().processes
    assert (known[0].phase, known[0].status) == ("failed", 3)
    assert (known[0].started or 0) <= (known[0].ended or 0) < (known[MANY].started or 0)


@pytest.mark.usefixtures("here")
def test_what_died_during_the_start_is_judged_after_it(tmp_path: Path) -> None:
    counter = "import pathlib, os; p = pathlib.Path('n'); n = p.stat().st_size if p.exists() else 0"
    twice = f"{counter}; p.write_bytes(b'x' * (n + 1)); os._exit(0 if n else 7)"
    processes = {
        "again": python(twice, cwd=str(tmp_path), retries=2),
        "after": {"command": ["/bin/true"], "after": ["again"]},
        **{f"p{number}": {"command": ["/bin/true"]} for number in range(20)},
    }
    run = start(tmp_path, processes=processes)
    assert local_run.wait(run) == 0
    state = run.state().processes
    assert [one.phase for one in state] == ["done"] * 22
    assert state[0].restarts == 1
    assert (state[1].started or 0) >= (state[0].ended or 0) > 0


@pytest.mark.usefixtures("here")
def test_each_log_holds_what_its_own_process_printed(tmp_path: Path) -> None:
    says = {name: {"command": ["/bin/sh", "-c", 'echo "$0 $SYMPH_INDEX"', name]} for name in ("a", "b", "c")}
    pair = {"replicas": 2, "processes": {"a": says["a"], "b": {**says["b"], "local": {"tty": False}}}}
    run = start(tmp_path, groups={"first": pair, "second": pair}, processes={"c": says["c"]})
    local_run.wait(run)
    planned = run.plan().processes
    found = [(run.process_dir(one.slot) / "log").read_text().split() for one in planned]
    assert found == [[one.process, str(one.index)] for one in planned]
    assert len(found) == 9


def _up_with_open_files(folder: Path, count: int, allowed: int) -> subprocess.CompletedProcess[str]:
    """Run `symph up` on `count` processes in a program that may have `allowed` files open."""
    spec = {"name": "exp", "processes": {f"p{number}": {"command": ["/bin/sleep", "60"]} for number in range(count)}}
    (folder / "exp.yaml").write_text(json.dumps(spec))

    lowered = ["/bin/sh", "-c", f'ulimit -Sn 64 && ulimit -Hn {allowed} && exec "$@"', "sh"]
    argv = [*lowered, sys.executable, "-m", "symphony_charts", "up", str(folder / "exp.yaml")]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.usefixtures("here")
def test_more_processes_than_open_files_are_refused_before_anything_starts(
    tmp_path: Path, private_places: Path
) -> None:
    done = _up_with_open_files(tmp_path, 100, allowed=200)
    assert done.returncode == ToolFailed.exit_code
    assert "100 processes need 264 open files, and the limit is 200" in done.stderr
    assert "ulimit -n" in done.stderr
    assert _left(private_places) == []


@pytest.mark.usefixtures("here")
def test_a_soft_limit_of_open_files_is_raised(tmp_path: Path) -> None:
    done = _up_with_open_files(tmp_path, 100, allowed=264)
    assert (done.returncode, done.stderr.count("error")) == (0, 0)


@pytest.mark.usefixtures("here")
def test_more_processes_than_terminals_are_refused_before_anything_starts(
    tmp_path: Path, private_places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "free_terminals", lambda: 20)
    experiment = from_data(
        {"name": "exp", "processes": {f"p{number}": {"command": ["/bin/sleep", "60"]} for number in range(30)}}
    )
    with pytest.raises(ToolFailed, match="30 processes need a terminal each, and only 20 are free") as refused:
        local_run.up(experiment, allocate(experiment), folder=tmp_path)
    assert "kernel.pty.max" in refused.value.next
    assert _left(private_places) == []


def test_terminals_in_use_are_not_free() -> None:
    before = machine.free_terminals()
    descriptors = os.openpty()
    try:
        # Other programs on this machine open and close terminals as well.
        until(lambda: machine.free_terminals() < before, 5.0)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _left(places: Path) -> list[Path]:
    """Return the remains of runs: folders, sockets, and programs that were started from them."""
    runs = list((places / "state").glob("local/*/*"))
    sockets = list((places / "run").glob("*.sock"))
    commands = [path for path in Path("/proc").glob("[0-9]*/cmdline") if str(places).encode() in _read(path)]
    return [*runs, *sockets, *commands]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_start_that_is_cut_short_leaves_nothing_that_down_does_not_end(
    tmp_path: Path, private_places: Path, number: signal.Signals
) -> None:
    spec = {"name": "exp", "processes": {f"p{index}": {"command": ["/bin/sleep", "60"]} for index in range(MANY)}}
    (tmp_path / "exp.yaml").write_text(json.dumps(spec))
    argv = [sys.executable, "-m", "symphony_charts", "up", str(tmp_path / "exp.yaml")]
    starting = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    # By then the first processes run, and tmux starts the others.
    until(lambda: bool(list((private_places / "state").glob("local/exp/*/p/5/pid"))))
    starting.send_signal(number)
    starting.wait(60)
    for run in runs_of("exp"):
        until(partial(_has_started, run))
        local_run.down(run)
    assert [path for path in _left(private_places) if path.name == "cmdline"] == []
    assert list((private_places / "run").glob("*.sock")) == []
    if number == signal.SIGINT:
        assert runs_of("exp") == []


# A program that runs `up` and is killed before the run is complete, when its tmux server has started or is starting.
_KILLED = """
import os, sys, time
from pathlib import Path
from symphony_charts.local import tmux_client, up
from tests.local.runs import start

def killed(run, *args):
    while sys.argv[1] == "yes" and not tmux_client.server_pid(run.socket):
        time.sleep(0.01)
    os.kill(os.getpid(), 9)

up.save_spec = killed
start(Path.cwd(), processes={"a": {"command": ["/bin/sleep", "60"]}})
"""


def _slow_tmux(tools: Path) -> Path:
    """Return a folder with a tmux whose server starts slowly."""
    tools.mkdir()
    is_start = 'case " $* " in *" start-server "*) sleep 1;; esac'
    (tools / "tmux").write_text(f'#!/bin/sh\n{is_start}\nexec {shutil.which("tmux")} "$@"\n')
    (tools / "tmux").chmod(0o755)
    return tools


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("is_there", ["yes", "no"])
def test_a_start_that_was_killed_before_it_was_complete_leaves_nothing(
    tmp_path: Path, private_places: Path, is_there: str
) -> None:
    tools = _slow_tmux(tmp_path / "bin")
    own = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PATH": f"{tools}:{os.environ['PATH']}"}
    killed = subprocess.run([sys.executable, "-c", _KILLED, is_there], cwd=tmp_path, env=own, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert live_runs() == []
    until(lambda: _left(private_places) == [], 20.0)


@pytest.mark.usefixtures("here")
def test_a_start_that_was_killed_later_goes_on(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    slow = f'case " $* " in *" source-file "*) : >{tmp_path}/on-its-way; sleep 0.5;; esac'
    (tools / "tmux").write_text(f'#!/bin/sh\n{slow}\nexec {shutil.which("tmux")} "$@"\n')
    (tools / "tmux").chmod(0o755)
    spec = {"name": "exp", "processes": {"a": {"command": ["/bin/sh", "-c", "exit 3"]}}}
    (tmp_path / "exp.yaml").write_text(json.dumps(spec))
    own = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    argv = [sys.executable, "-m", "symphony_charts", "up", str(tmp_path / "exp.yaml")]
    with subprocess.Popen(argv, env=own, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as starting:
        until((tmp_path / "on-its-way").exists)
        starting.kill()
    [run] = runs_of("exp")
    until(lambda: not run.is_live)
    assert (run.state().phase, run.state().processes[0].status) == ("failed", 3)


@pytest.mark.usefixtures("here")
def test_up_takes_over_a_start_that_was_killed_with_its_supervisor(tmp_path: Path) -> None:
    run = start(tmp_path, processes={"a": {"command": ["/bin/sleep", "60"]}})
    os.kill(supervisor_pid(run), signal.SIGKILL)
    until(lambda: not run.is_supervised)
    write_record(run.folder / "state.json", replace(run.state(), phase="starting"))
    again = start(tmp_path, processes={"a": {"command": ["/bin/sleep", "60"]}})
    assert (again.folder, again.state().phase) == (run.folder, "running")


def _has_started(run: Run) -> bool:
    return run.state().phase != "starting"


@pytest.mark.usefixtures("here")
def test_without_tmux_nothing_is_left_and_the_next_start_works(tmp_path: Path) -> None:
    (tmp_path / "naps.yaml").write_text("name: naps\nprocesses: {a: {command: [sleep, '60']}}\n")
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("sh", "bash", "env", "cat", "setsid"):
        (tools / name).symlink_to(str(shutil.which(name)))
    env = {**os.environ, "SYMPH_STATE_DIR": str(tmp_path / "s"), "SYMPH_RUNTIME_DIR": str(tmp_path / "r")}

    def symph(path: str, *words: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "symphony_charts", *words]
        own = {**env, "PATH": path}
        return subprocess.run(argv, cwd=tmp_path, env=own, capture_output=True, text=True, timeout=120, check=False)

    ended = symph(str(tools), "up", "naps.yaml")
    assert (ended.returncode, "tmux is not installed" in ended.stderr) == (5, True)
    assert "naps" not in symph(str(tools), "ls").stdout
    assert not list((tmp_path / "s").rglob("state.json"))
    try:
        assert symph(os.environ["PATH"], "up", "naps.yaml").returncode == 0
    finally:
        symph(os.environ["PATH"], "down", "naps")
