"""The leak guard's patterns mean the same to RE2 and to Python's `re`, the fallback without RE2."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symphony_charts.secrets.rules import OVERLAP, PIECE, PythonPattern, compile_pattern, find_words
from symphony_charts.system.package_data import table
from tests.e2e.leak_samples import harmless, planted

ROOT = Path(__file__).parents[2]
RULES = [rule for name in ("rules", "own_rules") for rule in json.loads(table(f"secrets/{name}.json"))["rules"]]
SAMPLES = b"\n".join([*planted().values(), *(data for _, data in harmless())])
WITHOUT_RE2 = "import sys; sys.modules['re2'] = None; import pytest; sys.exit(pytest.main(sys.argv[1:]))"
GITHUB = r"\b(ghp_[0-9a-zA-Z]{36})\b"


def spans(pattern: str, text: bytes) -> list[list[tuple[int, int]]]:
    found = []
    for compiled in (compile_pattern(pattern), PythonPattern(pattern)):
        found.append(
            [match.span(group) for match in compiled.finditer(text) for group in range(len(match.groups()) + 1)]
        )
    return found


@pytest.mark.parametrize("test", ["test_leaks.py", "test_decoding.py"])
def test_the_guard_finds_the_same_without_re2(test: str) -> None:
    argv = [sys.executable, "-c", WITHOUT_RE2, "-q", "-p", "no:cacheprovider", f"tests/secrets/{test}"]
    ended = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stdout


def test_each_rule_matches_the_same_bytes_in_both_engines() -> None:
    found = {rule["id"]: spans(rule["regex"], SAMPLES) for rule in RULES if "regex" in rule}
    assert [rule for rule, (of_re2, of_re) in found.items() if of_re2 != of_re] == []


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("a(?i)b|c", b"aB C"),
        ("(a(?i)b|c)d", b"aBd Cd CD"),
        (r"x(?:\z|$)", b"x\nx"),
        (r"[[:alnum:]]+[[(]", b"a1[ b2("),
        (r"[]|)$]+", b"|$)]"),
        (r"\[(?i)a\)", b"[A)"),
    ],
)
def test_syntax_that_python_lacks_is_translated(pattern: str, text: bytes) -> None:
    of_re2, of_re = spans(pattern, text)
    assert of_re2 == of_re != []


@pytest.mark.parametrize("before", [PIECE - 41, PIECE - 40, PIECE - 20, PIECE - 1, PIECE, 3 * (PIECE - OVERLAP)])
def test_a_token_at_the_border_of_two_pieces_is_found_once(before: int) -> None:
    text = b" " * before + b"ghp_" + b"a1" * 18 + b" " * PIECE
    of_re2, of_re = spans(GITHUB, text)
    assert of_re2 == of_re == [(before, before + 40)] * 2


def test_a_word_that_a_piece_ends_is_not_taken_for_a_whole_word() -> None:
    text = b" " * (PIECE - 40) + b"ghp_" + b"a1" * 18 + b"x"
    assert spans(GITHUB, text) == [[], []]


@given(st.binary(max_size=200))
def test_words_are_found_by_both_engines(text: bytes) -> None:
    words = ["a", "key", "", "\\."]
    assert sorted(find_words(words)(text)) == [n for n, word in enumerate(words) if word.encode() in text]
