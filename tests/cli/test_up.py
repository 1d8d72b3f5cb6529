"""`symph up --wait` and `--watch` in real tmux; a terminal's Ctrl-C sends SIGINT to the program."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from symphony_charts.cli.main import main
from symphony_charts.local import tmux_client
from symphony_charts.local.runs import find_run, live_runs, runs_of
from symphony_charts.system.file_locks import experiment_lock
from tests.local.runs import log_of, supervisor_pid, until, wrapper_pid
from tests.symph import symph

SPEC = """
name: exp
processes:
  a: {command: [sh, -c, 'cat lib/a.txt; exec sleep 300']}
  b: {command: [sh, -c, 'cat b.txt; exec sleep 300']}
"""


pytestmark = pytest.mark.usefixtures("here")


class Watching:
    """`symph up` or `symph run` in the background, and its output."""

    def __init__(self, folder: Path, *words: str, verb: str = "up") -> None:
        self.said, self.lines = folder / "said", folder / "lines"
        with self.said.open("w") as stderr, self.lines.open("w") as stdout:
            argv = [sys.executable, "-m", "symphony_charts", verb, "experiment.yaml", *words]
            self.program = subprocess.Popen(argv, cwd=folder, stdout=stdout, stderr=stderr)
        until(lambda: "watching" in self.said.read_text() or self.program.poll() is not None)

    def interrupt(self) -> int:
        self.program.send_signal(signal.SIGINT)
        return self.program.wait(timeout=30)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "lib" / "__pycache__").mkdir(parents=True)
    (tmp_path / "lib" / "a.txt").write_text("one\n")
    (tmp_path / "b.txt").write_text("one\n")
    (tmp_path / "experiment.yaml").write_text(SPEC)
    return tmp_path


@pytest.fixture
def watching(folder: Path) -> Iterator[Callable[..., Watching]]:
    started: list[Watching] = []

    def begin(*words: str, verb: str = "up") -> Watching:
        started.append(Watching(folder, *words, verb=verb))
        return started[-1]

    yield begin
    for one in started:
        one.program.kill()
        one.program.wait(timeout=30)


def both_say_one() -> None:
    """Wait until both have read the pending changes."""
    until(lambda: [log_of(find_run("exp"), name) for name in "ab"] == ["one\n", "one\n"])


def test_a_changed_file_restarts_the_processes_that_use_it(folder: Path, watching: Callable[..., Watching]) -> None:
    one = watching("--watch", "lib:a", "--watch", "b.txt:b")
    both_say_one()
    run, before = find_run("exp"), wrapper_pid(find_run("exp"), "b")
    (folder / "new").write_text("two\n")
    (folder / "new").rename(folder / "lib" / "a.txt")
    until(lambda: log_of(run, "a") == "one\ntwo\n")
    until(lambda: "restart a: a.txt" in one.said.read_text())
    assert wrapper_pid(run, "b") == before
    (folder / "b.txt").write_text("two\n")
    until(lambda: log_of(run, "b") == "one\ntwo\n")


def test_without_a_name_all_processes_are_restarted(folder: Path, watching: Callable[..., Watching]) -> None:
    watching("--watch", "lib")
    both_say_one()
    (folder / "lib" / "x.py").write_text("x")
    until(lambda: [log_of(find_run("exp"), name) for name in "ab"] == ["one\none\n", "one\none\n"])


def test_ignored_files_restart_nothing(folder: Path, watching: Callable[..., Watching]) -> None:
    watching("--watch", "lib", "--ignore", "*.ckpt")
    both_say_one()
    run = find_run("exp")
    before = {name: wrapper_pid(run, name) for name in "ab"}
    for name in ("__pycache__/x.pyc", "a.txt~", "x.ckpt"):
        (folder / "lib" / name).write_text("x")
    (folder / "lib" / "a.txt").write_text("two\n")
    until(lambda: log_of(find_run("exp"), "a") == "one\ntwo\n")
    until(lambda: all(wrapper_pid(run, name) != pid for name, pid in before.items()))
    assert log_of(find_run("exp"), "a") == "one\ntwo\n"


def test_an_interrupt_ends_the_watching_and_leaves_the_run(folder: Path, watching: Callable[..., Watching]) -> None:
    one = watching("--watch", "lib")
    assert one.interrupt() == 130
    assert "exp keeps running: symph attach exp | symph down exp" in one.said.read_text()
    assert find_run("exp").is_live


def test_a_changed_experiment_restarts_what_it_changes(folder: Path, watching: Callable[..., Watching]) -> None:
    one = watching("--watch", "b.txt:b")
    both_say_one()
    before = wrapper_pid(find_run("exp"), "b")
    (folder / "experiment.yaml").write_text(SPEC.replace("cat lib/a.txt", "echo hello"))
    until(lambda: log_of(find_run("exp"), "a") == "one\nhello\n")
    assert wrapper_pid(find_run("exp"), "b") == before
    (folder / "experiment.yaml").write_text("name: exp\nprocesses: {a: {comand: [x]}}\n")
    until(lambda: "error:" in one.said.read_text())
    (folder / "b.txt").write_text("two\n")
    until(lambda: one.said.read_text().count("error:") == 2)
    (folder / "experiment.yaml").write_text(SPEC)
    until(lambda: log_of(find_run("exp"), "a") == "one\nhello\none\n")


@pytest.mark.parametrize("verb", ["up", "run"])
def test_a_saved_fault_ends_nothing_and_lines_are_printed(
    folder: Path, watching: Callable[..., Watching], verb: str
) -> None:
    (folder / "experiment.yaml").write_text(
        "name: exp\nprocesses:\n"
        "  a: {command: [sh, lib/a.sh]}\n"
        "  b: {command: [sh, -c, 'exec sleep 300'], lifecycle: service, ready: none}\n"
    )
    (folder / "lib" / "a.sh").write_text("echo first; exec sleep 300\n")
    one = watching("--watch", "lib:a", verb=verb)
    until(lambda: "a | first\n" in one.lines.read_text())
    run, before = find_run("exp"), wrapper_pid(find_run("exp"), "b")
    (folder / "lib" / "a.sh").write_text("echo broken; exit 3\n")
    until(lambda: "a ! failed 3" in one.said.read_text())
    until(lambda: run.state().processes[0].phase == "failed")
    assert "running (1 failed)" in symph("ls").stdout
    (folder / "lib" / "a.sh").write_text("echo fixed; exec sleep 300\n")
    until(lambda: "a | fixed\n" in one.lines.read_text())
    assert [line for line in one.lines.read_text().splitlines() if " | " in line] == [
        *("a | first", "a | broken", "a | fixed")
    ]
    assert wrapper_pid(run, "b") == before
    assert one.interrupt() == 130
    assert run.is_live == (verb == "up")


def test_a_change_after_its_end_starts_the_experiment_anew(folder: Path, watching: Callable[..., Watching]) -> None:
    (folder / "experiment.yaml").write_text("name: exp\nprocesses: {a: {command: [sh, lib/a.sh]}}\n")
    (folder / "lib" / "a.sh").write_text("echo done\n")
    one = watching("--watch", "lib")
    until(lambda: "exp has ended; a change starts it again" in one.said.read_text())
    (folder / "lib" / "a.sh").write_text("echo fixed; exec sleep 300\n")
    until(lambda: len(runs_of("exp")) == 2)
    until(lambda: one.lines.read_text().endswith("a | fixed\n"))


def test_a_killed_supervisor_does_not_end_the_watching(folder: Path, watching: Callable[..., Watching]) -> None:
    watching("--watch", "lib:a")
    run = find_run("exp")
    os.kill(supervisor_pid(run), signal.SIGKILL)
    until(lambda: run.is_supervised)
    (folder / "lib" / "a.txt").write_text("two\n")
    until(lambda: log_of(run, "a") == "one\ntwo\n")


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("--watch", "lib", "--watch", "nowhere"), 8),
        (("--watch", "lib:nobody"), 8),
        (("--watch", "lib", "--wait"), 2),
    ],
)
def test_a_missing_watched_path_is_refused(
    folder: Path, watching: Callable[..., Watching], words: tuple[str, ...], status: int
) -> None:
    assert watching(*words).program.wait(timeout=30) == status
    assert "lib:nobody" in words or runs_of("exp") == []


def test_a_command_that_is_not_there_is_said_with_its_last_words_and_a_way_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "e.yaml").write_text('name: e\nprocesses:\n  p: {command: "python3 -V"}\n')
    assert main(["up", str(tmp_path / "e.yaml"), "--wait"]) == 127
    said = capsys.readouterr().err
    assert re.search(r"^p \| .*python3 -V: not found$", said, re.MULTILINE)
    assert 'process "p" failed (exit status 127): command not found' in said
    assert 'next: write its words apart: command: ["python3", "-V"]' in said
    assert main(["p", "e"]) == 0
    assert "failed 127 (command not found)" in capsys.readouterr().out
    assert main(["describe", "e"]) == 0
    assert "python3 -V: not found" in capsys.readouterr().out


def test_a_killed_tmux_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "e.yaml").write_text("name: e\nprocesses:\n  p: {command: [sh, -c, 'echo up; exec sleep 60']}\n")

    def kill_tmux() -> None:
        until(lambda: bool(live_runs()) and "up" in log_of(live_runs()[0], "p"))
        with experiment_lock("e", "a test"):  # `up` has begun to wait
            os.kill(tmux_client.server_pid(live_runs()[0].socket), signal.SIGKILL)

    killer = threading.Thread(target=kill_tmux)
    killer.start()
    assert main(["up", str(tmp_path / "e.yaml"), "--wait"]) == 6
    killer.join()
    assert "error: the run failed: tmux was killed" in capsys.readouterr().err
    assert main(["describe", "e"]) == 0
    assert "failed: tmux was killed" in capsys.readouterr().out


def test_an_interrupted_wait_tells_that_the_run_goes_on_and_how_to_end_it(folder: Path) -> None:
    argv = [sys.executable, "-m", "symphony_charts", "up", "--wait"]
    with subprocess.Popen(argv, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        assert "2 processes up" in program.stdout.readline()
        time.sleep(0.5)  # until it waits
        program.send_signal(signal.SIGINT)
        _, said = program.communicate(timeout=60)
        assert program.returncode == 130
    assert "exp runs on\nnext: symph logs -f exp | symph down exp" in said
    assert live_runs()
