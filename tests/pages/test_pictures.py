"""The pictures of terminals in the docs: each has its text beside it, is drawn from it, and is on a page."""

from __future__ import annotations

import html
import importlib
import re
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "pictures"
SCREENS = ("run", "top", "tiles", "status")


def words_of(picture: str) -> str:
    """Return the text of a picture, line by line, without blanks: each word has its own position."""
    drawn = re.findall(r'<text class="symph-r\d+" x="[^"]*" y="([^"]*)"[^>]*>(.*?)</text>', picture)
    lines: dict[str, str] = {}
    for place, text in drawn:
        lines[place] = lines.get(place, "") + html.unescape(text)
    return "\n".join(re.sub(r"\s", "", line) for line in lines.values())


@pytest.mark.parametrize("shade", ["light", "dark"])
@pytest.mark.parametrize("name", SCREENS)
def test_a_picture_shows_the_text_beside_it_and_stands_on_a_page(name: str, shade: str) -> None:
    said = (PICTURES / f"{name}.txt").read_text(encoding="utf-8")
    drawn = words_of((PICTURES / f"{name}-{shade}.svg").read_text(encoding="utf-8"))
    wanted = [re.sub(r"\s", "", line) for line in said.splitlines()]
    assert [line for line in drawn.splitlines() if line] == [line for line in wanted if line]
    pages = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("*.md"))
    assert f"pictures/{name}-{shade}.svg" in pages


@pytest.fixture
def general(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Return the normaliser of screens from scripts/screens.py, which imports its neighbours by their names."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    said: Callable[[str], str] = importlib.import_module("scripts.screens").general
    return said


def test_a_slow_machine_prints_the_same_picture_and_another_word_another(general: Callable[[str], str]) -> None:
    quick = "a | step 1\nb * succeeded after 1s\nreplay +2 * stopped after 1s\nrl succeeded"
    slow = (
        "c +1 * waits for replay to be ready, 12s\na | step 1\nb * succeeded after 9s\n"
        "replay * stopped after 9s\nc +1 * stopped after 9s\nrl succeeded"
    )
    assert general(quick) == general(slow) == "a | step 1\n1 * succeeded after N\n3 * stopped after N\nrl succeeded"
    for other in (quick.replace("+2", "+1"), quick.replace("stopped", "failed"), quick.replace("step 1", "step 2")):
        assert general(other) != general(quick)
