"""The leak guard's patterns mean to Python's `re` what they mean to RE2, for which gitleaks writes them."""

from __future__ import annotations

import pytest

from scripts.leak_rules import in_python_syntax
from symphony_charts.secrets.rules import OVERLAP, PIECE, find_matches

GITHUB = r"\b(ghp_[0-9a-zA-Z]{36})\b"


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("a(?i)b|c", b"aB C", [b"aB", b"C"]),
        ("(a(?i)b|c)d", b"aBd Cd CD", [b"aBd", b"Cd"]),
        (r"x(?:\z|$)", b"x\nx", [b"x"]),
        (r"[[:alnum:]]+[[(]", b"a1[ b2(", [b"a1[", b"b2("]),
        (r"[]|)$]+", b"|$)]", [b"|$)]"]),
        (r"\[(?i)a\)", b"[A)", [b"[A)"]),
    ],
)
def test_syntax_that_python_lacks_is_translated(pattern: str, text: bytes, found: list[bytes]) -> None:
    assert [match[0] for match in find_matches(in_python_syntax(pattern), text)] == found


@pytest.mark.parametrize("before", [PIECE - 41, PIECE - 40, PIECE - 20, PIECE - 1, PIECE, 3 * (PIECE - OVERLAP)])
def test_a_token_at_the_border_of_two_pieces_is_found_once(before: int) -> None:
    text = b" " * before + b"ghp_" + b"a1" * 18 + b" " * PIECE
    assert [match.span(1) for match in find_matches(GITHUB, text)] == [(before, before + 40)]


def test_a_word_that_a_piece_ends_is_not_taken_for_a_whole_word() -> None:
    text = b" " * (PIECE - 40) + b"ghp_" + b"a1" * 18 + b"x"
    assert list(find_matches(GITHUB, text)) == []
