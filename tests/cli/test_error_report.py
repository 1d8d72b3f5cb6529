"""Errors of users' scripts are reported as theirs, with their traceback; errors of this program as bugs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]

PROJECT = """\
from symphony_charts.commandline import SymphonyParser

class Project(SymphonyParser):
    def setup(self):
        super().setup()
        self.add_subparser("go")

    def action_go(self, args):
        '''Go.'''
        BODY

Project().main()
"""


@pytest.fixture
def python(tmp_path: Path) -> Run:
    """Run Python in an empty folder."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "SYMPH_STATE_DIR": str(tmp_path / "state")}
        argv = [sys.executable, *words]
        return subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False)

    return run


RUNNERS = [
    ["-m", "symphony_charts.compat", "mine.py"],
    ["-m", "symphony_charts.compat", "-m", "mine"],
    ["-m", "symphony_charts", "package", "mine.py"],
    ["-m", "symphony_charts", "up", "mine.py"],
    ["-m", "symphony_charts", "import", "torchx", "mine.py:app"],
]


@pytest.mark.parametrize("runner", RUNNERS, ids=" ".join)
@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("open('/nowhere/x')", "FileNotFoundError: [Errno 2] No such file or directory: '/nowhere/x'"),
        ("import yaml; yaml.safe_load('a: [')", "yaml.parser.ParserError: while parsing a flow node"),
        ("import nowhere_at_all", "ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("1 +", "SyntaxError: invalid syntax"),
    ],
)
def test_an_error_of_a_script_is_shown_with_its_own_traceback(
    python: Run, tmp_path: Path, runner: list[str], body: str, line: str
) -> None:
    (tmp_path / "mine.py").write_text(f"def go():\n    {body}\ngo()\n")
    done = python(*runner)
    assert done.returncode == 3, done.stderr
    assert f"  | {line}" in done.stderr
    assert 'mine.py", line 2' in done.stderr
    assert "/symphony_charts/" not in done.stderr


@pytest.mark.parametrize(
    ("body", "status"), [("raise KeyError('mine')", 3), ("raise SystemExit(7)", 7), ("return 5", 5)]
)
def test_a_projects_own_verb_fails_as_its_own(python: Run, tmp_path: Path, body: str, status: int) -> None:
    (tmp_path / "project.py").write_text(PROJECT.replace("BODY", body))
    done = python("project.py", "go")
    assert done.returncode == status
    assert ('project.py", line 10, in action_go' in done.stderr) == (status == 3)


def test_an_error_in_our_code_below_a_script_is_a_bug_of_ours(python: Run, tmp_path: Path) -> None:
    body = "import symphony_charts.cli.output as o; o.format_table(3, [])"
    (tmp_path / "project.py").write_text(PROJECT.replace("BODY", body))
    done = python("project.py", "go")
    assert (done.returncode, "this is a bug in symph" in done.stderr) == (70, True)


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["-m", "nowhere.at.all"], "No module named 'nowhere'"),
        (["-m", "folder"], "No module named folder.__main__"),
        (["nowhere.py"], "the script nowhere.py does not exist"),
    ],
)
def test_a_launcher_that_is_not_there_is_a_fault_of_the_input(
    python: Run, tmp_path: Path, words: list[str], what: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/__init__.py").touch()
    done = python("-m", "symphony_charts.compat", *words)
    assert (done.returncode, what in done.stderr) == (3, True), done.stderr


@pytest.mark.parametrize(("code", "status"), [("0", 0), ("5", 5), ("'bye'", 1), ("None", 0)])
def test_a_launcher_ends_with_the_status_that_it_asks_for(python: Run, tmp_path: Path, code: str, status: int) -> None:
    (tmp_path / "mine.py").write_text(f"import sys\nsys.exit({code})\n")
    assert python("-m", "symphony_charts.compat", "mine.py").returncode == status


def test_a_script_for_symphony_is_told_how_it_gets_its_arguments(python: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("from symphony.engine import Cluster\n")
    said = python("-m", "symphony_charts", "package", "mine.py").stderr
    assert "pass arguments of the script after --" in said
