"""Every verb has one shown name; Symphony's names work but are not offered."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from symphony_charts.cli.parser import SymphonyParser
from symphony_charts.cli.verbs import COMMON, HIDDEN, MEANINGS, VERBS, find_verb
from tests.symph import symph

FOLDERS = ("symphony_charts", "docs", "README.md", "examples", "chart-template", "gitops", "local", "scripts")
ROOT = Path(__file__).parents[2]
ALIASES = {alias: verb.name for verb in VERBS for alias in verb.aliases}
SYMPHONYS = {
    "p": "ps", "process": "ps", "list-processes": "ps", "lsp": "ps", "log": "logs", "l": "logs", "lse": "ls",
    "list-experiments": "ls", "x": "exec", "scp": "cp", "visit": "open", "vi": "open", "delete": "rm", "d": "rm",
    "switch-experiment": "use", "se": "use", "e": "use",
}  # fmt: skip


def texts() -> list[Path]:
    """Return the files in which users read names of verbs."""
    listed = subprocess.run(["git", "ls-files", "-z", *FOLDERS], cwd=ROOT, capture_output=True, text=True, check=True)
    paths = [
        ROOT / name
        for name in listed.stdout.split("\0")
        if name.endswith((".py", ".md", ".yaml", ".txt", ".tpl", ".sh", "check"))
    ]
    return [path for path in paths if path.is_file() and "decisions" not in path.parts]


@pytest.mark.parametrize("name", SYMPHONYS)
def test_a_name_of_symphonys_means_the_verb_of_today(name: str) -> None:
    parser = SymphonyParser()
    assert parser.get_subparser(name) is parser.get_subparser(SYMPHONYS[name])
    assert callable(getattr(parser, "action_" + name.replace("-", "_")))


def test_help_shows_each_verb_once_and_none_of_its_other_names(capsys: pytest.CaptureFixture[str]) -> None:
    common = [name for names in COMMON.values() for name in names]
    for words, names in ((["help", "--all"], [verb.name for verb in VERBS]), (["--help"], common)):
        SymphonyParser().main(words)
        shown = re.findall(r"^  ([a-z][\w-]*)  ", capsys.readouterr().out, re.MULTILINE)
        assert shown == names


def test_help_of_a_verb_shows_common_options_first_and_one_entry_of_set(capsys: pytest.CaptureFixture[str]) -> None:
    SymphonyParser().main(["up", "--help"])
    common, advanced = capsys.readouterr().out.split("\nadvanced:\n")
    assert re.findall(r"^  (?:-\w.*, )?(--[\w-]+)", common, re.MULTILINE)[:3] == ["--help", "--setenv", "--detach"]
    assert "  --spec-set" in advanced
    assert not re.search(r"^  --set-", common + advanced, re.MULTILINE)


@pytest.mark.parametrize("verb", ["describe", "events"])
def test_former_verbs_are_parts_of_status(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert find_verb(verb) is None
    assert SymphonyParser().main([verb, "--help"]) == 0
    assert "symph status" in capsys.readouterr().out


def test_completion_offers_no_other_name() -> None:
    script = symph("completion", "zsh").stdout
    offered = set(re.findall(r"[\w-]+", script))
    assert {"validate", "ps"} <= offered
    assert not offered & {"list-processes", "list-experiments", "switch-experiment", "delete-batch", "lsp", "lse"}


def test_every_text_says_the_names_that_help_shows() -> None:
    other = "|".join(sorted((*ALIASES, *(name for verb in HIDDEN for name in verb.names)), key=len, reverse=True))
    written = re.compile(rf"(?<!torchx )\bsymph ({other})(?![\w.:/-])")
    found = {
        f"{path.relative_to(ROOT)}: symph {name}"
        for path in texts()
        for name in written.findall(path.read_text(encoding="utf-8"))
        if path.stem not in HIDDEN_MODULES
    }
    assert not found


HIDDEN_MODULES = {verb.module.rpartition(".")[2] for verb in HIDDEN} | {"completion"}


class Own(SymphonyParser):
    """A project with verbs whose names are aliases of built-in ones."""

    prog = "own"

    def setup(self) -> None:
        for name in ("delete", "process", "help"):
            self.add_subparser(name).add_argument("what")

    def action_delete(self, args: object) -> int:
        """Delete it."""
        return 51

    def action_process(self, args: object) -> int:
        """Process it."""
        return 52

    def action_help(self, args: object) -> int:
        """Help it."""
        return 53

    def action_lsp(self, args: object) -> int:
        """List them."""
        return 54


def test_a_projects_own_verb_keeps_its_name_beside_ours() -> None:
    assert [Own().main([name, "it"]) for name in ("delete", "process", "help")] == [51, 52, 53]
    parser = Own()
    parser.load_all()
    assert "EXPERIMENT" in parser.get_subparser("rm").format_usage()


@pytest.mark.parametrize("name", ["ps", "lsp", "p", "list-processes"])
def test_a_project_verb_answers_to_every_name_of_the_verb(name: str) -> None:
    assert Own().main([name]) == 54


@pytest.mark.parametrize("words", [["ps"], ["import", "compose"], ["gitops", "lint"], ["delete"], []])
def test_help_prints_the_page_of_what_follows(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert SymphonyParser().main(["help", *words]) == 0
    page = capsys.readouterr().out
    assert SymphonyParser().main([*words, "--help"]) == 0
    assert capsys.readouterr().out == page


def test_help_on_a_word_that_is_no_verb_is_wrong_usage() -> None:
    assert SymphonyParser().main(["help", "pakage"]) == 2


def test_version_is_said_as_a_verb_too() -> None:
    assert symph("version").stdout == symph("--version").stdout
    assert '"version": "0.' in symph("version", "-o", "json").stdout


def test_a_name_and_a_pattern_are_two_ways_to_say_what_goes() -> None:
    assert SymphonyParser().main(["rm", "x", "--match", "y.*"]) == 2


def test_an_unknown_experiment_is_not_found_under_both_names(private_places: Path) -> None:
    assert private_places
    assert SymphonyParser().main(["rm", "--match", "y.*", "--yes"]) == 8
    assert SymphonyParser().main(["delete-batch", "y.*", "--yes"]) == 8


@pytest.mark.parametrize("words", [["package", "x.yaml"], ["import", "dijob", "x.yaml"]])
def test_a_mistyped_format_makes_no_folder(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.yaml").write_text("name: x\nprocesses: {a: {image: i, command: [a]}}\n")
    assert SymphonyParser().main([*words, "-o", "josn"]) == 2
    assert "'josn'" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["x.yaml"]


@pytest.mark.parametrize("word", MEANINGS)
def test_verbs_of_other_tools_are_refused_with_existing_commands(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    parser = SymphonyParser()
    assert find_verb(word) is None
    assert parser.main([word]) == 2
    said = capsys.readouterr().err
    for line in MEANINGS[word]:
        assert f"{line}`" in said
        below = [name for name in line.split() if not name.startswith("-")]
        assert SymphonyParser().main([*below, "--help"]) == 0
        page = capsys.readouterr().out
        assert all(flag in page for flag in line.split() if flag.startswith("-"))


@pytest.mark.parametrize(
    ("word", "meant"), [("apply", "up"), ("remove", "rm"), ("LIST", "ls"), ("stopp", "stop"), ("kil", "rm")]
)
def test_a_word_of_another_tool_or_a_slip_finds_its_verb(
    word: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert SymphonyParser().main([word, "x"]) == 2
    assert f" {meant}`" in capsys.readouterr().err
