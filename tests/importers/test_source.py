"""Files of other tools are untrusted text: several documents, unquoted words, and worse."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symphony_charts.errors import SpecError
from symphony_charts.importers.input_file import read
from symphony_charts.importers.report import Note, Report


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: no\nb: on\nc: 0440\nd: 1_000", {"a": "no", "b": "on", "c": "0440", "d": "1_000"}),
        ("8080: a\ntrue: b\n~: c", {"8080": "a", "true": "b", "~": "c"}),
        ("a: true\nb: 7\nc: null", {"a": True, "b": 7, "c": None}),
        ("a: 'no'\nb: \"0440\"", {"a": "no", "b": "0440"}),
    ],
    ids=["words that readers differ on", "keys that are no text", "values", "quoted words"],
)
def test_what_may_be_read_in_two_ways_is_text(text: str, expected: object) -> None:
    assert read(text.encode(), "f.yaml").documents[0].data == expected


def test_every_document_that_holds_something_is_read() -> None:
    documents = read(b"---\na: 1\n---\n---\nb: 2\n", "f.yaml").documents
    assert [document.data for document in documents] == [{"a": 1}, {"b": 2}]


def test_the_line_of_a_path_counts_in_the_file() -> None:
    source = read(b"a: 1\n---\n# words\nb:\n  c: 2\n", "f.yaml")
    assert (source.locate("[1].b.c"), source.locate("[1]")) == ("f.yaml:5, [1].b.c", "f.yaml:4, [1]")
    assert read(b'{\n "a": {\n  "b": 1\n }\n}', "f.json").locate("a.b") == "f.json:3, a.b"


def test_notes_name_file_and_line() -> None:
    source = read(b"a: 1\nb: 2\n", "f.yaml")
    assert source.located(Report(notes=(Note(path="b", what="x"),))).notes[0].path == "f.yaml:2, b"


def test_json_with_half_an_emoji_is_refused_and_with_a_whole_one_read() -> None:
    with pytest.raises(SpecError, match=r"f\.json"):
        read(b'{"a": "\\ud83d"}', "f.json")
    assert read(b'{"a": "\\ud83d\\ude00"}', "f.json").documents[0].data == {"a": "\U0001f600"}


def test_a_key_that_stands_twice_is_refused_with_its_line() -> None:
    with pytest.raises(SpecError, match="appears twice") as caught:
        read(b'{"a": 1,\n "a": 2}', "f.json")
    assert "f.json:2, a" in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"\xff\xfe\x00a", id="not-utf-8"),
        pytest.param(b"a: \x00", id="nul"),
        pytest.param(b"\x89PNG\r\n\x1a\n\x00", id="binary"),
        pytest.param(b"a: [1, 2", id="open"),
        pytest.param(b"\ta: 1", id="tab"),
        pytest.param(b"[" * 5000, id="deep"),
        pytest.param(b'{"a":' * 3000 + b"1" + b"}" * 3000, id="deep-json"),
        pytest.param(b"- " * 3000 + b"a", id="deep-block"),
        pytest.param(b"a: *b", id="no-anchor"),
        pytest.param(b"a: &a [*a]", id="own-alias"),
        pytest.param(b"a: !!python/object/apply:os.system [ls]", id="python-tag"),
        pytest.param(b"", id="empty"),
        pytest.param(b"# only words\n", id="comment"),
        pytest.param(b"%YAML 9.9\n---\na", id="directive"),
        pytest.param(b"{a: 1}\n}", id="extra-brace"),
        pytest.param(b"? [a, b]\n: c\n", id="list-as-key"),
        pytest.param(b"name: x\nname: y\n", id="twice"),
        pytest.param(b"---\n" * 500, id="no-documents"),
        pytest.param("a: 1".encode("utf-16"), id="utf-16"),
    ],
)
def test_what_is_no_clean_text_is_refused_by_name(content: bytes) -> None:
    with pytest.raises(SpecError, match=r"evil\.yaml"):
        read(content, "evil.yaml")


def test_aliases_of_aliases_are_refused_before_they_fill_the_memory() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    with pytest.raises(SpecError, match="values once aliases are filled in"):
        read("\n".join(lines).encode(), "bomb.yaml")


def test_more_than_sixteen_megabytes_are_refused_unread() -> None:
    with pytest.raises(SpecError, match="symph reads at most"):
        read(b"a" * (16 * 1024 * 1024 + 1), "big.yaml")


def test_tags_of_python_objects_are_passed_over_only_when_asked() -> None:
    text = b"a: !!python/tuple [1]\nb: &x !!python/object/new:m.C\n  dictitems: {c: 2}\n"
    assert read(text, "f.yaml", python_tags=True).documents[0].data == {"a": [1], "b": {"dictitems": {"c": 2}}}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | st.text("abcno0:~ -'\"#\n", max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abyn018", max_size=4), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.text("abcn018", min_size=1, max_size=5), VALUES, min_size=1, max_size=4))
def test_any_json_is_read_as_it_is_also_by_the_yaml_reader(value: dict[str, object]) -> None:
    text = json.dumps(value, ensure_ascii=False)
    assert read(text.encode(), "f").documents[0].data == value
    assert read(f"# not JSON now\n{text}".encode(), "f").documents[0].data == value


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    with suppress(SpecError):
        read(content, "f")
