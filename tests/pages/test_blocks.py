"""README.md and docs/ are correct: each block has a mark, and each command exists.

tests/e2e/test_pages.py runs blocks marked `run` from the wheel.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from symphony_charts.formats.yaml_read import load
from symphony_charts.settings.project import read_settings, settings_schema
from symphony_charts.spec.data import from_data
from symphony_charts.spec.json_schema import json_schema
from tests.pages.blocks import KINDS, PAGES, ROOT, Block, blocks_of, given_files, name_of
from tests.pages.commands import fault_of_command, fault_of_span, spans_of, steps_of, symph_commands

BLOCKS = [block for page in PAGES for block in blocks_of(page)]


def marked(*kinds: str) -> list[Block]:
    return [block for block in BLOCKS if block.kind in kinds]


def test_every_block_is_tried_or_says_why_not() -> None:
    wrong = [
        block.place
        for block in BLOCKS
        if block.kind not in KINDS or (KINDS[block.kind] is not None and KINDS[block.kind] != bool(block.rest))
    ]
    assert wrong == []


def test_commands_stand_in_blocks_that_say_so() -> None:
    # `sh` and `console` are parsed and can be run; `text` is a program's output.
    others = [block for block in BLOCKS if not steps_of(block)]
    assert [block.place for block in others if re.search(r"^(\$ )?symph ", block.text, re.MULTILINE)] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_of_a_page_is_one(page: Path) -> None:
    lines = [line for block in blocks_of(page) for line, _ in steps_of(block)]
    faults = [fault_of_command(words) for line in lines for words in symph_commands(line)]
    faults += [fault_of_span(span) for span in spans_of(page.read_text(encoding="utf-8"))]
    assert [fault for fault in faults if fault] == []


@pytest.mark.parametrize("block", marked("experiment"), ids=lambda block: block.place)
def test_what_is_shown_of_an_experiment_is_read(block: Block) -> None:
    shown: Any = load(block.text)
    rest = (
        {"name": "x"} if shown.keys() & {"processes", "groups"} else {"name": "x", "processes": {"p": {"cmds": "true"}}}
    )
    from_data({**rest, **shown})
    jsonschema_rs.Draft202012Validator(json_schema()).validate({**rest, **shown})


@pytest.mark.parametrize("block", marked("settings"), ids=lambda block: block.place)
def test_what_is_shown_of_the_settings_is_read(block: Block, tmp_path: Path) -> None:
    (tmp_path / ".symph.yaml").write_text(block.text)
    assert read_settings(tmp_path / ".symph.yaml")
    jsonschema_rs.Draft202012Validator(settings_schema()).validate(load(block.text))


@pytest.mark.parametrize("block", marked("tested"), ids=lambda block: block.place)
def test_the_test_that_a_block_names_reads_its_page(block: Block) -> None:
    assert block.page.name in (ROOT / block.rest).read_text(encoding="utf-8")


def test_what_a_page_has_make_do_is_a_target() -> None:
    targets = set(re.findall(r"(?m)^([a-z0-9-]+):.*## ", (ROOT / "Makefile").read_text()))
    pages = [*PAGES, *ROOT.glob("*.md"), *ROOT.glob(".github/**/*.*"), ROOT / ".devcontainer" / "devcontainer.json"]
    command = re.compile(r"(?m)(?:^|[`=\"] ?)make ([a-z0-9-]+)")
    named = {page: set(command.findall(page.read_text(encoding="utf-8"))) for page in pages}
    assert {page: found - targets for page, found in named.items() if found - targets} == {}
    assert all(named[ROOT / page] for page in ("README.md", "docs/e2e.md", "docs/development.md"))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_what_a_page_gives_its_reader_is_there(page: Path) -> None:
    assert [name for name, path in given_files(page).items() if not path.exists()] == []
