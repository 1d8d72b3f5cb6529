"""The pages of the site: each verb and record has one, the menu lists them all, and no link is dead."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts import build_docs
from symphony_charts.cli import output
from symphony_charts.cli.verbs import VERBS, Verb
from symphony_charts.placement.pools import plain
from tests.pages.blocks import ROOT

_FENCED = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[[^\]\n]*\]\(([^)\s]+)\)|(?:src|srcset|href)=\"([^\"]+)\"")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with all pages, as passed to the generator."""
    folder = tmp_path_factory.mktemp("site") / "docs"
    build_docs.lay_pages(folder)
    return folder


def anchors(page: Path) -> set[str]:
    text = _FENCED.sub("", page.read_text(encoding="utf-8"))
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower()) for title in titles}


def links(text: str) -> list[str]:
    found = [one or other for one, other in _LINK.findall(_FENCED.sub("", text))]
    return [link for link in found if not re.match(r"[a-z]+:", link)]


def dead(page: Path) -> list[str]:
    wrong = []
    for link in links(page.read_text(encoding="utf-8")):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            wrong.append(f"{page.name}: {link}")
    return wrong


def test_no_link_of_the_site_leads_nowhere(pages: Path) -> None:
    found = sorted(pages.rglob("*.md"))
    assert sum(len(links(page.read_text(encoding="utf-8"))) for page in found) > 100
    assert [link for page in found for link in dead(page)] == []


def test_no_link_of_the_repository_leads_nowhere() -> None:
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "decisions").glob("*.md")]
    assert [link for page in found for link in dead(page)] == []


def test_the_menu_names_every_page_once(pages: Path) -> None:
    named = re.findall(r"(\S+\.md)$", build_docs.menu(), re.MULTILINE)
    assert sorted(named) == sorted(page.relative_to(pages).as_posix() for page in pages.rglob("*.md"))


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_every_verb_has_a_page_with_its_options(pages: Path, verb: Verb) -> None:
    text = (pages / "verbs" / f"{verb.name}.md").read_text(encoding="utf-8")
    assert "`--help`" in text
    assert "usage: symph " in text


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def test_every_variable_of_ours_has_a_row() -> None:
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "symphony_charts").rglob("*.py")]
    named = {name for text in sources for name in re.findall(r"\"(SYMPH(?:ONY)?_[A-Z_]+[A-Z])\"", text)}
    assert len(named) > 15
    assert sorted(name for name in named if f"`{name}`" not in page("variables.md")) == []


def test_every_key_of_the_settings_has_the_row_that_its_record_gives() -> None:
    # `make docs` writes them.
    assert page("settings.md") == build_docs.with_settings(page("settings.md"))


def test_every_key_of_a_pools_file_has_a_row() -> None:
    keys = plain._KNOWN.union(*plain._INNER.values())
    assert sorted(key for key in keys if f"`{key}`" not in page("pools.md")) == []


def test_the_page_for_programs_names_the_version_of_what_they_read() -> None:
    assert f"`{output.API_VERSION}`" in page("output.md")
