"""Execution of programs: their environment, their captured output, and complete cleanup."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from symphony_charts.errors import ToolFailed, ToolMissing
from symphony_charts.system.subprocess_runner import base_env, run
from tests.waiting import eventually, is_alive


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_what_a_program_said_is_kept_byte_for_byte() -> None:
    ended = run(python("import sys; sys.stdout.buffer.write(b'\\xff o'); sys.stderr.write('e')"))
    assert (ended.status, ended.stdout, ended.error_text, ended.text) == (0, b"\xff o", "e", "� o")


def test_a_word_is_an_argument_whatever_it_holds(tmp_path: Path) -> None:
    word = f"$(touch {tmp_path}/made); `x` \"'\n*"
    assert run(["printf", "%s", word]).text == word
    assert list(tmp_path.iterdir()) == []


def test_input_is_fed_and_no_input_is_an_end_of_file() -> None:
    assert run(["cat"], input="a\u00e4").text == "a\u00e4"
    assert run(["cat"], input=b"\0b").stdout == b"\0b"
    assert run(["cat"]).stdout == b""


def test_a_failure_says_everything_that_is_known() -> None:
    with pytest.raises(ToolFailed) as caught:
        run(["sh", "-c", "echo out; echo err >&2; exit 7"])
    error = caught.value
    assert (error.status, error.stdout, error.stderr, error.exit_code) == (7, "out\n", "err\n", 6)
    assert (error.argv[0], "sh failed with exit status 7" in error.what) == ("sh", True)


def test_a_status_is_the_callers_to_judge_when_it_says_so() -> None:
    ended = run(["sh", "-c", "exit 7"], check=False)
    assert ended.status == 7
    assert ended.failure("no good", "here", "do this").next == "do this"


def test_a_program_that_is_not_there_is_missing_and_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ToolMissing, match="no-such-program"):
        run(["no-such-program"])
    with pytest.raises(ToolFailed, match="no such folder"):
        run(["true"], cwd=tmp_path / "none")
    (tmp_path / "plain").write_text("x")
    with pytest.raises(ToolFailed, match="cannot start"):
        run([str(tmp_path / "plain")])


def test_a_program_that_takes_too_long_is_ended_with_its_children(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    began = time.monotonic()
    with pytest.raises(ToolFailed, match=r"took longer than 0\.5 s") as caught:
        run(["sh", "-c", f"sleep 60 & echo $! > {note}; echo said; wait"], timeout_s=0.5)
    assert time.monotonic() - began < 10
    assert caught.value.stdout == "said\n"
    # The runner waited for its pipes, which close a moment before it ends.
    eventually(lambda: not is_alive(int(note.read_text())))


def test_a_program_may_tidy_up_within_its_grace_and_no_longer(tmp_path: Path) -> None:
    tidy = f"trap 'echo bye; touch {tmp_path}/tidy; exit 0' TERM; echo on; while :; do sleep 0.1; done"
    with pytest.raises(ToolFailed) as caught:
        run(["sh", "-c", tidy], timeout_s=0.5, grace_s=5)
    assert ((tmp_path / "tidy").exists(), caught.value.stdout) == (True, "on\nbye\n")
    began = time.monotonic()
    with pytest.raises(ToolFailed):
        run(["sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"], timeout_s=0.2, grace_s=0.3)
    assert time.monotonic() - began < 5


def test_an_interrupt_ends_the_program_too(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    code = "from symphony_charts.system.subprocess_runner import run; "
    code += f"run(['sh', '-c', 'echo $$ > {note}; exec sleep 61'])"
    with subprocess.Popen(python(code), stderr=subprocess.DEVNULL) as outer:
        eventually(lambda: note.exists() and note.read_text().strip())
        time.sleep(0.5)  # Popen itself, which may not have returned yet, leaves its program behind
        outer.send_signal(signal.SIGINT)
        outer.wait(20)
    eventually(lambda: not is_alive(int(note.read_text())))


@pytest.mark.parametrize("name", ["GIT_DIR", "GIT_INDEX_FILE", "PYTHONPATH", "TMUX", "LC_MESSAGES", "HELM_NAMESPACE"])
def test_variables_that_lead_programs_astray_are_left_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "astray")
    assert name not in base_env()


@pytest.mark.parametrize("name", ["GIT_SSH_COMMAND", "GIT_AUTHOR_NAME", "GIT_CONFIG_GLOBAL", "HOME", "KUBECONFIG"])
def test_variables_that_are_the_users_choice_stay(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "chosen")
    assert base_env()[name] == "chosen"


def test_messages_are_english_and_variables_can_be_set_and_taken_away() -> None:
    os.environ.setdefault("HOME", "/")
    said = run(["sh", "-c", "echo $LC_ALL ${HOME-none} $MINE"], env={"HOME": None, "MINE": "1"}).text
    assert said == "C none 1\n"


def test_a_program_has_no_terminal() -> None:
    assert run(["sh", "-c", "test -t 0; echo $?; (: < /dev/tty) 2>/dev/null; echo $?"]).text.split()[0] == "1"
