"""Manual pages agree with the parser, and groff formats them without a warning."""

from __future__ import annotations

import argparse
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts.man_pages import main as write_pages
from symphony_charts.cli.main import main
from symphony_charts.cli.parser import SymphonyParser
from symphony_charts.cli.verbs import VERBS


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("man")
    write_pages(folder)
    return folder


def test_there_is_a_page_for_each_verb_and_one_that_names_them(pages: Path) -> None:
    assert {page.name for page in pages.iterdir()} == {"symph.1", *(f"symph-{verb.name}.1" for verb in VERBS)}
    page = (pages / "symph.1").read_text()
    assert [verb.name for verb in VERBS if f"\\fB{verb.name}\\fR" not in page] == []


def test_the_formatter_takes_every_page_without_a_warning(pages: Path, need_tool: Callable[[str], str]) -> None:
    files = sorted(map(str, pages.iterdir()))
    done = subprocess.run(
        [need_tool("groff"), "-man", "-Tutf8", "-ww", *files], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    shown = re.sub("\x1b\\[[0-9;]*m", "", done.stdout)
    assert "symph up experiment.yaml --wait" in shown
    assert "SYMPH_NAMESPACE" in shown


@pytest.mark.parametrize("verb", ["up", "ps", "gitops", "import"])
def test_every_option_that_help_shows_is_on_the_page(pages: Path, verb: str) -> None:
    page = (pages / f"symph-{verb}.1").read_text().replace("\\-", "-")
    parsers = [SymphonyParser().get_subparser(verb)]
    parsers += [
        below
        for action in parsers[0]._actions
        if isinstance(action, argparse._SubParsersAction)
        for below in action.choices.values()
    ]
    shown = [action for parser in parsers for action in parser._actions if action.help is not argparse.SUPPRESS]
    assert [flag for action in shown for flag in action.option_strings if flag not in page] == []


def test_the_command_prints_the_page_that_the_script_writes(
    pages: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["help", "up", "--man"]) == 0
    assert capsys.readouterr().out == (pages / "symph-up.1").read_text()
    assert main(["help", "nothing", "--man"]) == 8
