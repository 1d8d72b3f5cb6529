"""Safe printing of foreign text on a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symphony_charts.formats.printable import terminal_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("\x1b[31mred\x1b[0m end", "\x1b[31mred\x1b[0m end\x1b[0m"),
        ("\x1b[2Jgone\x1b]0;title\x07", "gone"),
        (" 10 %\r 50 %\r100 %\r", "100 %"),
        ("a\tb", "a       b"),
        ("bell\x07", "bell\ufffd"),
    ],
)
def test_a_line_colours_itself_and_does_nothing_else(text: str, shown: str) -> None:
    assert terminal_line(text) == shown


@given(st.text())
def test_no_line_drives_the_terminal(text: str) -> None:
    shown = terminal_line(text)
    parts = shown.split("\x1b[")
    assert parts[0].isprintable()
    assert all(part.lstrip("0123456789;:")[:1] == "m" and part.isprintable() for part in parts[1:])
