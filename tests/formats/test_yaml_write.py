"""Round trips of the dumper despite different readers: YAML 1.1 has `on` and `1:30`, YAML 1.2 has `0o17` and `1e3`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import ryaml
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from yamllint import linter
from yamllint.config import YamlLintConfig

from symphony_charts.formats.yaml_read import load
from symphony_charts.formats.yaml_write import dump, dump_all

# chart-testing's lintconf.yaml
LINTCONF = YamlLintConfig("""
rules:
  braces: {min-spaces-inside: 0, max-spaces-inside: 0, min-spaces-inside-empty: -1, max-spaces-inside-empty: -1}
  brackets: {min-spaces-inside: 0, max-spaces-inside: 0, min-spaces-inside-empty: -1, max-spaces-inside-empty: -1}
  colons: {max-spaces-before: 0, max-spaces-after: 1}
  commas: {max-spaces-before: 0, min-spaces-after: 1, max-spaces-after: 1}
  comments: {require-starting-space: true, min-spaces-from-content: 2}
  document-end: disable
  document-start: disable
  empty-lines: {max: 2, max-start: 0, max-end: 0}
  hyphens: {max-spaces-after: 1}
  indentation: {spaces: consistent, indent-sequences: whatever, check-multi-line-strings: false}
  key-duplicates: enable
  line-length: disable
  new-line-at-end-of-file: enable
  new-lines: {type: unix}
  trailing-spaces: enable
  truthy: enable
""")
# fmt: off
TRICKY = [
    "--env", "--a=b", "-e", "-inf", "-NaN", "--no", "500m", "1Gi",
    "on", "n", "Y", "NO", "null", "~", "", "=", "<<", "1e3", "1e-4", "0o17", "017", "0x1F", "1_000", "12:30:45",
    "2020-01-01", ".5", "+1", "-", "- a", "a: b", "a #b", "#a", "a:", ":a", "a:b", "!x", "&a", "*a", "%a", "@a",
    "`a", "{", "[", "]", "?", "? a", "|", ">", "'", '"', "\\", "a\nb", "a\nb\n", "a\n\n", "\na", " a\nb", "a \nb",
    "a\n b\n", "a\tb", "\ta\nb", "a\n\tb", "a\r\nb", "\x85", "\u2028", "\ufeff", "\x7f", "\x9f", "\ufffe", "é😀",
    "---", "...", "a\n---\nb\n", "a\n...\nb", "{{ .Values.x }}", ".inf", ".nan", "inf", "a\n\n\n\nb", "# a\nb\n",
    "a\n\n\nb\n", "x" * 2000, "a\u00a0\nb", "a  b", "a\n ", "None", "gcr.io/a/b:1", "a, b", "key=value", "a b-c",
]
# fmt: on
texts = st.one_of(st.sampled_from(TRICKY), st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
numbers = st.one_of(st.integers(-(2**63), 2**63), st.floats(allow_nan=False), st.booleans(), st.none())
data = st.recursive(
    st.one_of(texts, numbers),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4)),
    max_leaves=20,
)


READERS: dict[str, Callable[[str], Any]] = {
    "YAML 1.1": lambda text: yaml.load(text, Loader=yaml.CSafeLoader),
    "YAML 1.2": ryaml.loads,  # type: ignore[attr-defined]  # compiled, re-exported without saying so
    "our own": load,
}


@pytest.mark.parametrize("reader", READERS)
@given(value=data)
@example(value={text: [text, {text: text}] for text in TRICKY})
@settings(max_examples=150, deadline=None)
def test_each_reader_reads_back_what_was_written(reader: str, value: Any) -> None:
    assert same(READERS[reader](dump(value)), value)


@given(st.dictionaries(texts, data, max_size=4))
@example({text: [text, {text: text}] for text in TRICKY})
@settings(max_examples=100, deadline=None)
def test_chart_testings_yamllint_has_nothing_to_say(value: Any) -> None:
    assert list(linter.run(dump(value), LINTCONF)) == []


def test_text_of_several_lines_is_a_literal_block() -> None:
    assert dump({"a": "import os\n\nprint(1)\n"}) == "a: |\n  import os\n\n  print(1)\n"


def test_plain_names_and_images_stay_bare_and_unicode_is_written_as_itself() -> None:
    assert dump({"image": "a.io/b:1", "cmd": ["python", "a b"]}) == "image: a.io/b:1\ncmd:\n  - python\n  - a b\n"
    assert dump("é 😀") == '"é 😀"\n'


@pytest.mark.parametrize(
    ("value", "error", "what"),
    [
        ({"a": "\ud83d"}, ValueError, "U\\+D83D"),
        ({1: "a"}, TypeError, "string keys"),
        ({"a": b"x"}, TypeError, "bytes"),
    ],
)
def test_what_json_cannot_hold_is_refused(value: object, error: type[Exception], what: str) -> None:
    with pytest.raises(error, match=what):
        dump(value)


def test_several_documents_are_read_apart_again() -> None:
    assert list(yaml.safe_load_all(dump_all([{"a": 1}, ["x\n"]]))) == [{"a": 1}, ["x\n"]]


def same(read: object, written: object) -> bool:
    """Return True if equal, with 1, 1.0 and True distinct, except integers too large for a reader's own type."""
    if isinstance(written, dict):
        return (
            isinstance(read, dict) and list(read) == list(written) and all(same(read[k], written[k]) for k in written)
        )
    if isinstance(written, list):
        return isinstance(read, list) and len(read) == len(written) and all(map(same, read, written))
    if isinstance(written, float):
        return isinstance(read, float) and read == written
    return read == written and isinstance(read, bool) == isinstance(written, bool)
