"""Conversion of exceptions into text and an exit status."""

from __future__ import annotations

import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from symphony_charts.cli import failures
from symphony_charts.cli.failures import status_of
from symphony_charts.errors import (
    CheckFailed,
    Conflict,
    NotFound,
    PlacementError,
    Problem,
    SpecError,
    SymphError,
    ToolFailed,
    ToolMissing,
    UsageError,
)

# Code within the package, for errors of this program.
OURS: dict[str, Any] = {}
ACTION = "def action(error):\n    if isinstance(error, int):\n        return error\n    raise error\n"
exec(compile(ACTION, failures.__file__, "exec"), OURS)  # noqa: S102 - the file name is what counts


def run(error: BaseException | int, *, verbose: bool = False) -> int:
    return status_of(lambda: int(OURS["action"](error)), lambda: Namespace(verbose=verbose))


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (CheckFailed("x"), 1),
        (UsageError("x"), 2),
        (SpecError.one("x"), 3),
        (PlacementError("x"), 4),
        (ToolMissing("x"), 5),
        (ToolFailed("x"), 6),
        (Conflict("x"), 7),
        (NotFound("x"), 8),
    ],
)
def test_each_kind_of_error_has_its_status(error: SymphError, status: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(error) == status
    assert capsys.readouterr() == ("", "error: x\n")


def test_the_status_of_the_verb_is_the_status() -> None:
    assert (run(0), run(4)) == (0, 4)


def test_every_fault_has_what_where_and_next(capsys: pytest.CaptureFixture[str]) -> None:
    faults = [Problem(what="one", path="a.b", next="mend it"), Problem(what="two", path="c")]
    assert run(SpecError(faults, at="rl.yaml:3")) == 3
    said = "error: one\n  at:   rl.yaml:3, a.b\n  next: mend it\nerror: two\n  at:   rl.yaml:3, c\n"
    assert capsys.readouterr().err == said


def test_a_tools_last_words_are_shown_and_with_v_all_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    lines = "".join(f"line {number}\n" for number in range(20))
    error = ToolFailed("git failed", argv=("git", "push"), status=1, stdout="out\n", stderr=lines, seconds=1.5)
    assert run(error) == 6
    short = capsys.readouterr().err
    assert ("line 9" in short, "  | line 10\n" in short, "  | line 19\n" in short) == (False, True, True)
    assert run(error, verbose=True) == 6
    long = capsys.readouterr().err
    assert all(text in long for text in ("ran: git push", "exit status 1 after 1.50 s", "  | out\n", "  | line 0\n"))


@pytest.mark.parametrize(("debug", "has_traceback"), [("", False), ("1", True)])
def test_a_refusal_is_no_traceback_even_with_v(
    debug: str, has_traceback: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SYMPH_DEBUG", debug)
    assert run(Conflict("the version exists"), verbose=True) == 7
    assert ("Traceback" in capsys.readouterr().err) == has_traceback


def test_control_characters_of_a_server_do_not_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    said = "remote: \x1b]0;mine\x07ok \x1b[31mred\x1b[0m \x9b2J\x08\n\x1b[2Jnext\tcolumn\r\n"
    assert run(ToolFailed("it \x1b[31msaid no", stderr=said)) == 6
    assert capsys.readouterr().err == "error: it said no\n  | remote: ok red \ufffd\n  | next\tcolumn\n"


def test_an_interrupt_during_the_imports_is_quiet() -> None:
    script = """
import os, signal, sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "symphony_charts.cli.arguments":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
from symphony_charts.cli.main import main
sys.exit(main(["ls"]))
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (130, "")


def test_anything_else_is_a_bug_of_ours_with_a_log_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SYMPH_STATE_DIR", str(tmp_path))
    assert run(ZeroDivisionError("division")) == 70
    said = capsys.readouterr().err
    (log,) = (tmp_path / "logs").iterdir()
    assert ("ZeroDivisionError: division" in said, str(log) in said) == (True, True)
    assert ("Traceback" in log.read_text(), log.stat().st_mode & 0o077, "Traceback" in said) == (True, 0, False)


def test_a_home_that_cannot_be_written_does_not_hide_the_bug(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SYMPH_STATE_DIR", str(tmp_path / "file"))
    assert run(ValueError("x")) == 70
    place = Path(capsys.readouterr().err.split("at:")[1].split("\n")[0].strip())
    assert "ValueError" in place.read_text()
    place.unlink()


def test_an_interrupt_and_an_exit_of_the_script_keep_their_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert (run(KeyboardInterrupt()), run(SystemExit(5)), run(SystemExit(None))) == (130, 5, 0)
    capsys.readouterr()
    assert run(SystemExit("no good")) == 1
    assert capsys.readouterr().err == "no good\n"


_CTRL_C_IN = """\
import os, signal, sys
from symphony_charts.cli.main import main

def hook(event, args):
    if event == "exec" and args[0].co_filename.endswith(sys.argv[1]):
        os.kill(os.getpid(), signal.SIGINT)

sys.addaudithook(hook)
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize("module", ["cli/git_repository.py", "gitops/base.py", "gitops/store/store.py"])
def test_ctrl_c_while_modules_are_imported_is_an_interrupt(module: str, tmp_path: Path) -> None:
    """CPython drops an exception that is raised while an import statement loads a lazy module."""
    argv = [sys.executable, "-c", _CTRL_C_IN, module, "promote", "rl", "--from", "dev", "--to", "prod"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (130, "interrupted\n")
