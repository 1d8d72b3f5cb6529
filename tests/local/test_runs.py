"""Experiments in real tmux: their view, their end, and complete cleanup."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from symphony_charts.cli.main import main
from symphony_charts.errors import NotFound, SpecError
from symphony_charts.local import tmux_client
from symphony_charts.local import up as local_run
from symphony_charts.local.run_files import NO_STATUS
from symphony_charts.local.runs import Run, find_run
from symphony_charts.system import package_data, processes
from tests.local.runs import failure_of, log_of, python, start, supervisor_pid, until, wrapper_pids
from tests.namespace import run_alone
from tests.waiting import is_alive

pytestmark = pytest.mark.usefixtures("here")

# Listens on the service x until it is stopped.
SERVE = """
import os, socket, time
time.sleep(float(os.environ.get("PAUSE", "0")))
server = socket.create_server((os.environ["SYMPH_X_HOST"], int(os.environ["SYMPH_X_PORT"])))
print("up", flush=True)
time.sleep(60)
"""

# Prints bye on TERM, after a while.
POLITE = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (time.sleep(0.3), print("bye", flush=True), sys.exit(0)))
print("up", flush=True)
time.sleep(60)
"""

READ_FILES = """
import json
import os
for folder, name in (("SYMPH_CONFIG_DIR", "a.txt"), ("SYMPH_SECRETS_DIR", "token")):
    print(open(os.environ[folder] + "/" + name).read(), flush=True)
"""

# Survives HUP and TERM in every way that ordinary programs know.
STUBBORN = """
import os, signal, subprocess, sys, time
for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
sleep = [sys.executable, "-c", "import time; time.sleep(300)"]
subprocess.Popen(sleep)
subprocess.Popen(["nohup", *sleep], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
subprocess.Popen(["setsid", *sleep])
subprocess.Popen(["env", "-i", "setsid", *sleep])
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(300)
    os._exit(0)
print("ready", flush=True)
time.sleep(300)
"""

# Plays tmux: runs the wrapper in a terminal, never polls it, and prints the delay between its status and its end.
BUSY_TERMINAL = """
import os, pty, sys, time
wrapper, folder = sys.argv[1:]
pid, _ = pty.fork()
if pid == 0:
    os.execv("/bin/sh", ["sh", wrapper, folder])
os.waitpid(pid, 0)
print(time.time() - os.stat(f"{folder}/exit").st_mtime)
"""


def survivors_of(run: Run) -> list[int]:
    """Return the processes that still run in the run's namespaces or with its cookie."""
    cookie = f"SYMPH_RUN={run.run_id}".encode()
    return [record.pid for record in processes.members(str(run.folder / "scratch"), (), cookie)]


def pid_of(run: Run, slot: int) -> int:
    path = run.process_dir(slot) / "pid"
    until(lambda: path.exists() and path.read_text().strip() != "")
    return int(path.read_text())


def test_a_run_ends_with_the_success_of_its_processes(tmp_path: Path) -> None:
    run = start(tmp_path, processes={"a": python("print('hello')")})
    assert local_run.wait(run) == 0
    assert log_of(run, "a") == "hello\n"


@pytest.mark.parametrize("status", [1, 3, 42, 255])
def test_the_status_of_a_run_is_that_of_the_process_that_failed(tmp_path: Path, status: int) -> None:
    run = start(tmp_path, processes={"a": python(f"raise SystemExit({status})"), "b": python("input()")})
    assert local_run.wait(run) == status
    assert failure_of(run) == "a"


def test_a_killed_process_fails_the_run_by_name(tmp_path: Path) -> None:
    run = start(tmp_path, processes={"w": {**python("input()"), "restart": "never"}, "m": python("input()")})
    os.kill(pid_of(run, 0), signal.SIGKILL)
    assert local_run.wait(run) == 137
    assert failure_of(run) == "w"


def test_an_exit_status_that_was_never_noted_is_unknown_and_no_success(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = start(tmp_path, processes={"w": {**python("input()"), "restart": "never"}})
    os.kill(wrapper_pids(run)[0], signal.SIGKILL)
    assert local_run.wait(run) == 1
    assert main(["ps", "exp", "-o", "json"]) == 0
    (item,) = json.loads(capsys.readouterr().out)["items"]
    assert (item["phase"], item["status"]) == ("failed", None)
    assert item["state"].startswith("failed with unknown exit status")
    assert main(["describe", "exp"]) == 0
    assert "exit status unknown" in capsys.readouterr().out


def test_nothing_is_left_of_a_run_that_has_ended(tmp_path: Path, private_places: Path) -> None:
    run = start(tmp_path, processes={"a": python("print(1)")}, configs={"c": {"text": "x"}})
    local_run.wait(run)
    assert survivors_of(run) == []
    assert list((private_places / "run").iterdir()) == []
    files = [path for path in run.folder.rglob("*") if path.is_file()]
    left = sorted(path.name for path in files)
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    kept = ["log", "log.idx", "plan.json", "spec.json", "state.json", "supervisor.log", "tries.jsonl"]
    assert left == [".symph.json", "identity.json", *kept]


@pytest.mark.parametrize("case", ["plain", "own root", "no supervisor", "no tmux"])
def test_stopping_ends_whole_trees_of_stubborn_processes(tmp_path: Path, case: str) -> None:
    mounts = [{"volume": "v", "at": "/symph-no-such-folder"}] if case == "own root" else []
    process = {**python(STUBBORN), "grace_period": 1, "mounts": mounts}
    run = start(tmp_path, volumes={"v": {"type": "empty_dir"}}, processes={"a": process})
    until(lambda: "ready" in log_of(run, "a"))
    assert len(survivors_of(run)) >= 6
    if case == "no supervisor":
        os.kill(supervisor_pid(run), signal.SIGKILL)
        until(lambda: not run.is_supervised)
        assert is_alive(pid_of(run, 0))
    elif case == "no tmux":
        os.kill(tmux_client.server_pid(run.socket), signal.SIGKILL)
    local_run.down(run)
    assert survivors_of(run) == []
    assert run.state().survivors == []


def test_term_reaches_the_main_process_and_its_handler_is_waited_for(tmp_path: Path) -> None:
    run = start(tmp_path, processes={"a": python(POLITE)})
    until(lambda: "up" in log_of(run, "a"))
    local_run.down(run)
    assert log_of(run, "a") == "up\nbye\n"


def test_processes_that_end_before_they_can_be_watched_are_not_waited_for(tmp_path: Path) -> None:
    short = {"command": ["sh", "-c", "exit 3"], "retries": 1, "local": {"tty": False}}
    run = start(tmp_path, processes={f"p{number}": short for number in range(24)}, on_failure="continue")
    deadline = time.monotonic() + 60
    while run.is_live and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not run.is_live
    assert [item.restarts for item in run.state().processes] == [1] * 24


def test_two_experiments_run_side_by_side_on_the_same_port(tmp_path: Path) -> None:
    processes_ = {"s": {**python(SERVE), "binds": {"x": 7000}}}
    first, second = start(tmp_path, "one", processes=processes_), start(tmp_path, "two", processes=processes_)
    until(lambda: "up" in log_of(first, "s") and "up" in log_of(second, "s"))
    assert first.plan().base_address != second.plan().base_address


def test_nothing_of_the_callers_environment_leaks_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_PRIVATE_TOKEN", "x")
    run = start(tmp_path, processes={"a": python("import os; print(sorted(os.environ), flush=True)")})
    local_run.wait(run)
    names = set(eval(log_of(run, "a")))  # noqa: S307 - the list our own line of Python printed
    extra = {name for name in names if not name.startswith("SYMPH")} - {"LC_CTYPE"}
    assert extra == {"PATH", "HOME", "LANG", "TERM", "HOSTNAME", "CUDA_VISIBLE_DEVICES"} & names


def test_configs_and_secrets_stand_where_a_pod_has_them(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret")
    run = start(tmp_path, processes={"a": python(READ_FILES)}, configs={"a.txt": {"text": "conf"}}, secrets=["token"])
    assert local_run.wait(run) == 0
    assert log_of(run, "a") == "conf\ns3cret\n"
    assert not Path("/etc/symph/config/a.txt").exists()


def test_a_secret_is_in_no_argument_list_and_in_no_file_that_stays(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t0psecret-value")
    run = start(tmp_path, processes={"a": {**python("input()"), "env": {"KEY": "t0psecret-value"}}}, secrets=["token"])
    pid_of(run, 0)
    lines = list(Path("/proc").glob("[0-9]*/cmdline"))
    assert not any(b"t0psecret" in path.read_bytes() for path in lines if path.exists() and os.access(path, os.R_OK))
    shown = subprocess.run(
        ["tmux", "-S", str(run.socket), "show-environment", "-g"], capture_output=True, text=True, check=True
    )
    assert "t0psecret" not in shown.stdout
    local_run.down(run)
    assert not any(b"t0psecret" in path.read_bytes() for path in run.folder.rglob("*") if path.is_file())


def test_a_preamble_may_set_the_environment(tmp_path: Path) -> None:
    run = start(
        tmp_path,
        processes={"a": python("import os; print(os.environ['DISABLE_RENDERING'], flush=True)")},
        local={"preamble": ["export DISABLE_RENDERING=1"]},
    )
    assert local_run.wait(run) == 0
    assert log_of(run, "a") == "1\n"


def test_a_preamble_that_fails_stops_the_process_and_says_which_line(tmp_path: Path) -> None:
    run = start(tmp_path, processes={"a": python("print('never')")}, local={"preamble": ["source /no/such/venv"]})
    assert local_run.wait(run) == 126
    assert "preamble failed: source /no/such/venv" in log_of(run, "a")


def test_a_missing_folder_fails_with_its_name(tmp_path: Path) -> None:
    run = start(tmp_path, processes={"a": {**python("pass"), "cwd": "/no/such/folder"}})
    assert local_run.wait(run) == 126
    assert "/no/such/folder" in log_of(run, "a")


def test_a_process_that_only_its_image_can_start_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="local runs use no images") as caught:
        start(tmp_path, image="x", processes={"a": {"args": ["learn"]}})
    assert caught.value.problems[0].path == "processes.a"
    with pytest.raises(NotFound):
        find_run("exp")


def test_output_printed_just_before_death_is_kept_whole(tmp_path: Path) -> None:
    run = start(
        tmp_path,
        processes={
            "a": python("import os\nfor i in range(10000): print(i)\nimport sys; sys.stdout.flush(); os._exit(1)")
        },
    )
    assert local_run.wait(run) == 1
    assert log_of(run, "a").split() == [str(number) for number in range(10000)]


def test_a_terminal_that_is_busy_gets_time_to_read_the_last_output(tmp_path: Path) -> None:
    # tmux asks the kernel for unread output before it closes the terminal of an ended program. The kernel counts output
    # only after a delay, so tmux closes terminals with unread output if it learns of the end before it polls again.
    folder = tmp_path / "p" / "0"
    folder.mkdir(parents=True)
    (folder / "start").write_text("exec echo last words\n")
    (folder / "exit").write_bytes(NO_STATUS)
    argv = [sys.executable, "-c", BUSY_TERMINAL, str(package_data.path("local") / "wrapper.sh"), str(folder)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    assert (folder / "exit").read_text() == "0  \n"
    assert float(done.stdout) >= 0.1


def test_a_stranger_with_the_number_of_a_lost_log_viewer_gets_no_signal(tmp_path: Path) -> None:
    run_alone("tests.local.reused_number", str(package_data.path("local") / "wrapper.sh"), str(tmp_path))


def test_the_users_own_tmux_server_is_not_touched(
    tmp_path: Path, private_places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMUX_TMPDIR", str(private_places))
    socket = private_places / "own.sock"
    own = ["tmux", "-S", str(socket), "-f", "/dev/null"]
    subprocess.run([*own, "new-session", "-d", "-s", "mine", "sleep", "60"], check=True)
    try:
        monkeypatch.setenv("TMUX", f"{socket},1,0")
        before = subprocess.run([*own, "list-windows", "-a"], capture_output=True, check=True).stdout
        local_run.wait(start(tmp_path, processes={"a": python("pass")}))
        after = subprocess.run([*own, "list-windows", "-a"], capture_output=True, check=True).stdout
        assert before == after
    finally:
        subprocess.run([*own, "kill-server"], check=True)


def test_an_idle_supervisor_uses_no_cpu(tmp_path: Path) -> None:
    run = start(tmp_path, processes={"a": python("input()")})
    stat = Path(f"/proc/{supervisor_pid(run)}/stat")

    def is_idle_for_a_second() -> bool:
        before = stat.read_text().split()[13:15]
        time.sleep(1.0)
        return stat.read_text().split()[13:15] == before

    until(is_idle_for_a_second)


def test_what_is_still_on_its_way_to_the_log_when_the_run_ends_is_written(tmp_path: Path) -> None:
    run = start(tmp_path, processes={"a": python("print('up', flush=True); input(); print('last words', flush=True)")})
    until(lambda: "up" in log_of(run, "a"))
    ask = ["tmux", "-S", str(run.socket)]
    slow = f"sleep 1; exec cat >>{run.process_dir(0)}/log"
    subprocess.run([*ask, "pipe-pane", "-t", "%0", ";", "pipe-pane", "-t", "%0", slow], check=True)
    subprocess.run([*ask, "send-keys", "-t", "%0", "Enter"], check=True)
    assert local_run.wait(run) == 0
    assert log_of(run, "a").endswith("last words\n")


def shown(run: Run, pane: str = "%0") -> str:
    """Return the content of a pane with its scrollback, as an attached user sees it."""
    argv = ["tmux", "-S", str(run.socket), "capture-pane", "-p", "-J", "-S", "-", "-t", pane]
    return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=20).stdout


def test_the_pane_of_a_process_without_a_terminal_shows_its_output(tmp_path: Path) -> None:
    program = (
        "import sys; print('tty', sys.stdout.isatty(), flush=True); [print('line', i) for i in range(99)]; input()"
    )
    run = start(
        tmp_path,
        processes={"a": {**python(program), "local": {"tty": False}}, "b": python("input()")},
        on_failure="continue",
    )
    until(lambda: "tty False\nline 0\n" in shown(run))
    until(lambda: run.state().processes[0].phase == "failed")
    until(lambda: "EOFError" in shown(run))
    assert shown(run).count("line 98") == 1
    assert log_of(run, "a").count("line 98") == 1


def test_each_start_of_a_process_without_a_terminal_is_shown(tmp_path: Path) -> None:
    program = "import time; print('began', flush=True); time.sleep(60)"
    run = start(tmp_path, processes={"a": {**python(program), "local": {"tty": False}}})
    until(lambda: shown(run).count("began") == 1)
    local_run.restart(run, [0])
    until(lambda: shown(run).count("began") == 2)
    assert log_of(run, "a") == "began\nbegan\n"
