"""The spec of a command line: a file, a folder's, stdin, or the current folder's, for every verb."""

from __future__ import annotations

from pathlib import Path

import pytest

from symphony_charts.cli.main import main
from symphony_charts.cli.parser import SymphonyParser
from tests.cli.grammar import Command, all_commands
from tests.symph import symph

SPEC = "name: rl\nprocesses: {a: {image: 'busybox:1.36', command: [sleep, '1'], binds: [x]}}\n"
DESTS = {"spec", "specs", "source", "what"}


def takes_spec(command: Command) -> bool:
    """Return True if a verb takes a spec as a positional argument."""
    return any("SPEC" in str(action.metavar) for action in command.positionals if action.dest in DESTS)


COMMANDS = {" ".join(command.words): command for command in all_commands() if takes_spec(command)}
VERBS = "up run validate render plan diff package publish install upgrade sweep secrets"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Enter a folder with a spec in it and in a folder below it."""
    (tmp_path / "rl").mkdir()
    for folder in (tmp_path, tmp_path / "rl"):
        (folder / "experiment.yaml").write_text(SPEC)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def spec_in(words: list[str]) -> str:
    """Return the spec that a command line selects."""
    args = SymphonyParser().parse(words)
    value = next(getattr(args, dest) for dest in ("specs", "spec", "source", "what") if hasattr(args, dest))
    return str(value[0] if isinstance(value, list) else value)


def test_the_verbs_are_those_that_take_a_spec() -> None:
    assert set(VERBS.split()) <= {name.split()[0] for name in COMMANDS}


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", COMMANDS)
def test_every_verb_takes_a_folder_and_without_a_word_the_current_one(name: str) -> None:
    words = [*COMMANDS[name].least()]
    assert spec_in(words) == "experiment.yaml"
    assert spec_in([*words, "./rl"]) == str(Path("rl/experiment.yaml"))
    assert spec_in([*words, "-"]) == "-"


@pytest.mark.usefixtures("here")
def test_a_bare_name_is_a_published_experiment_for_diff_also_where_a_folder_is_called_so() -> None:
    assert spec_in(["diff", "rl", "0.1.0", "0.2.0"]) == "rl"


def test_a_folder_of_a_chart_is_a_chart(here: Path) -> None:
    (here / "rl/Chart.yaml").write_text("name: rl")
    assert spec_in(["install", "rl"]) == "rl"


def test_without_a_spec_here_that_is_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["validate"]) == 3
    assert "the file experiment.yaml does not exist" in capsys.readouterr().err


def test_a_spec_from_stdin_uses_the_current_folder_and_a_lock_of_its_name(here: Path) -> None:
    done = symph("package", "-", stdin=SPEC, cwd=here)
    assert done.returncode == 0, done.stderr
    assert (here / "rl.lock.yaml").is_file()
    assert (here / "dist/rl-0.1.0.tgz").is_file()
    assert not (here / "-.lock.yaml").exists()


def test_a_spec_from_stdin_does_not_hide_values_from_there(here: Path) -> None:
    done = symph("package", "-", "-f", "-", stdin=SPEC, cwd=here)
    assert (done.returncode, "- is an experiment, and -f takes a values file" in done.stderr) == (3, True)


def test_a_fault_of_what_comes_in_has_its_line(here: Path) -> None:
    done = symph("validate", "-", stdin="name: x\nprocesss: {}\n", cwd=here)
    assert (done.returncode, "-:2" in done.stderr) == (3, True)
