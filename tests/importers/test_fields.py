"""Reading fields one by one must find every fault of a map in one go, and forget none of its keys."""

from __future__ import annotations

import pytest

from symphony_charts.importers.common.field_reader import Fields, show
from symphony_charts.importers.common.report import Log


def fields(data: object) -> Fields:
    return Fields(data, "top", Log())


def test_wrong_types_are_faults_with_their_paths_and_read_as_nothing() -> None:
    found = fields({"a": [], "b": "x", "c": {}})
    assert (found.text("a"), found.integer("b"), found.texts("c")) == (None, None, [])
    assert [problem.path for problem in found.log.problems] == ["top.a", "top.b", "top.c"]


def test_what_is_no_map_is_one_fault_and_reads_as_empty() -> None:
    found = fields(["a"])
    assert not found
    assert [problem.what for problem in found.log.problems] == ["a list stands where a map is needed"]


def test_unread_keys_are_noted_once() -> None:
    found = fields({"a": 1, "b": 2, "c": None})
    found.text("a")
    found.note_unread()
    found.note_unread()
    assert [note.path for note in found.log.notes] == ["top.b"]


def test_numbers_as_text_keep_their_spelling() -> None:
    assert fields({"a": True}).text("a") == "true"


@pytest.mark.parametrize("value", [True, 1.5, "x", "--1", float("nan"), float("inf"), 10**40, "1" * 30, [], "½"])
def test_what_is_no_whole_number_in_range_is_a_fault(value: object) -> None:
    found = fields({"a": value})
    assert found.integer("a", 0) is None
    assert found.log.problems


def test_digits_in_quotes_are_a_whole_number() -> None:
    assert fields({"a": "12"}).integer("a") == 12


@pytest.mark.parametrize("value", ["1e400", "nan", float("inf"), "x", None])
def test_a_number_is_finite(value: object) -> None:
    assert fields({"a": value}).number("a") is None


def test_long_and_odd_values_are_shown_short() -> None:
    assert len(show("x" * 500)) < 70
    assert show(10**5000) == "a very large number"
    assert show({}) == "a map"


def test_a_key_that_no_reader_took_is_lost_without_anybody_saying_so() -> None:
    found = fields({"a": {"x": 1, "y": 2}, "b": 3, "c": None})
    found.map("a").text("x")
    report = found.log.report()
    assert [note.path for note in report.lost] == ["top.b", "top.a.y"]
    assert report.carried == ("top.a.x",)


def test_a_field_with_a_note_on_it_is_not_carried() -> None:
    found = fields({"a": 1, "b": [{"c": 2}], "d": 3, "e": 4})
    for name in ("a", "d", "e"):
        found.text(name)
    found.maps("b")[0].text("c")
    found.log.changed("top.a", "said otherwise")
    found.log.lost("top.b", "left out")
    found.skip("d")
    found.drop("e", "no such thing here")
    assert found.log.report().carried == ()
