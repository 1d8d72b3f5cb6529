"""Strict reading: text that two readers read differently, or that would explode, is an error that names its place."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symphony_charts.errors import SpecError
from symphony_charts.formats.yaml_read import SourceNumber, line_of, load


def refusal(text: str) -> SpecError:
    with pytest.raises(SpecError) as caught:
        load(text)
    return caught.value


@pytest.mark.parametrize("word", ["on", "off", "yes", "No", "y", "N", "ON", "0777", "0o17", "0b11", "1_000", "0x1F"])
def test_a_word_that_readers_take_differently_is_refused(word: str) -> None:
    assert refusal(f"a: {word}").problems[0].path == "line 1, a"


@pytest.mark.parametrize("key", ["on", "n", "1", "1.5", "true", "null", "~"])
def test_a_key_that_is_not_text_to_every_reader_is_refused(key: str) -> None:
    problem = refusal(f"a: 1\n{key}: 2").problems[0]
    assert ("is not text to every YAML reader" in problem.what, problem.path) == (True, "line 2")


@pytest.mark.parametrize("key", ["[1]", "{a: 1}"])
def test_a_list_or_a_map_as_a_key_is_refused(key: str) -> None:
    assert "cannot be a key" in str(refusal(f"? {key}\n: 2"))


def test_a_key_that_stands_twice_is_refused_with_its_path() -> None:
    problem = refusal("processes:\n  a: {}\n  b: {}\n  a: {}\n").problems[0]
    assert problem.path == "line 4, processes.a"


def test_all_such_faults_are_reported_at_once() -> None:
    assert len(refusal("a: yes\na: 1\n1: 0777\n").problems) == 4


def test_anchors_aliases_and_merges_are_filled_in() -> None:
    text = "base: &b {x: 1, w: 2}\na: *b\nc: {<<: *b, w: 3}\nd: {<<: [*b, {z: 4}]}\n"
    assert load(text) == {
        "base": {"x": 1, "w": 2},
        "a": {"x": 1, "w": 2},
        "c": {"w": 3, "x": 1},
        "d": {"x": 1, "w": 2, "z": 4},
    }


def test_an_alias_inside_its_own_anchor_is_refused() -> None:
    assert "refers to nothing" in str(refusal("a: &a [*a]"))


def test_a_billion_laughs_are_refused_before_they_are_laughed() -> None:
    rounds = "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 15))
    assert "once aliases are filled in" in str(refusal("a0: &a0 [x]\n" + rounds))


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
def test_hostile_nesting_is_refused_and_does_not_crash(opening: str) -> None:
    # Our limit is lower than libyaml's, but libyaml may read ahead and reach its own first.
    problem = refusal(opening * 100_000).problems[0]
    assert ("deep" in problem.what, problem.path) == (True, "line 1")


def test_a_second_document_is_refused_with_its_line() -> None:
    assert refusal("a: 1\n---\nb: 2\n").problems[0].path == "line 2"


@pytest.mark.parametrize("tag", ["!!python/object:os.system", "!x", "!!binary", "!!set"])
def test_tags_are_refused(tag: str) -> None:
    assert "is not read" in str(refusal(f"a: {tag} {{}}"))


@pytest.mark.parametrize("text", ["a: [1", "a: b: c", "\0", "a:\n\t- b", '"', "a: *x", "a: \ud800"])
def test_what_is_no_yaml_is_an_error_and_no_traceback(text: str) -> None:
    assert refusal(text).exit_code == 3


@given(st.text(max_size=60))
@settings(max_examples=300, deadline=None)
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(SpecError):
        load(text)


def test_numbers_remember_how_they_were_written() -> None:
    number = load("1e-4")
    assert isinstance(number, SourceNumber)
    assert (number.text, float(number)) == ("1e-4", 0.0001)


def test_dates_and_times_stay_text() -> None:
    assert load("[2020-01-01, 12:30]") == ["2020-01-01", "12:30"]


def test_an_empty_text_holds_nothing() -> None:
    assert load("# nothing\n") is None


TEXT = """name: rl
labels:
  app.kubernetes.io/name: x
processes:
  Learner_1:
    binds:
      - replay
      - ps: 7000
    connects: [a,
      b]
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("name", 1),
        ("labels.app.kubernetes.io/name", 3),
        ("processes.Learner_1", 5),
        ("processes.learner-1.binds[1]", 8),
        ("processes.learner-1.connects[1]", 10),
        ("processes.learner-1.image", 5),
    ],
)
def test_a_path_has_its_line(path: str, line: int) -> None:
    assert line_of(TEXT, path) == line


@pytest.mark.parametrize(("text", "path"), [(TEXT, "nowhere.at.all[3]"), ("[" * 100_000, "a.b")])
def test_a_path_that_is_absent_has_no_line(text: str, path: str) -> None:
    assert line_of(text, path) is None
