"""Precedence of an environment's values: the settings, then its own values, then those of a command."""

from __future__ import annotations

from typing import Any

import pytest

from symphony_charts.gitops.pointer import Given, environment_values


@pytest.mark.parametrize(
    ("values", "old", "new", "result"),
    [
        ({}, {}, {"a": 1}, {"a": 1}),
        ({"a": 1}, {"a": 1}, {"a": 2}, {"a": 2}),
        ({"a": 1}, {"a": 1}, {}, {}),
        ({"a": 3}, {"a": 1}, {"a": 2}, {"a": 3}),
        ({"a": 3}, {}, {"a": 2}, {"a": 3}),
        ({}, {"a": 1}, {"a": 2}, {}),
        ({"m": {"a": 1, "b": 5}}, {"m": {"a": 1}}, {"m": {"a": 2, "c": 3}}, {"m": {"a": 2, "b": 5, "c": 3}}),
        ({"m": {"b": 5}}, {"m": {"a": 1}}, {"m": {"a": 2, "c": 3}}, {"m": {"b": 5, "c": 3}}),
        ({"m": {"a": 1, "b": 5}}, {"m": {"a": 1}}, {}, {"m": {"b": 5}}),
        ({}, {"m": {"a": 1}}, {"m": {"a": 1}}, {}),
        ({"l": [1]}, {"l": [1]}, {"l": [2, 3]}, {"l": [2, 3]}),
        ({"m": 4}, {"m": {"a": 1}}, {"m": {"a": 2}}, {"m": 4}),
    ],
)
def test_settings_count_where_the_environment_says_nothing_itself(
    values: dict[str, Any], old: dict[str, Any], new: dict[str, Any], result: dict[str, Any]
) -> None:
    assert environment_values(values, old, new, Given()) == result


def test_without_settings_those_of_then_stay() -> None:
    assert environment_values({"a": 1, "b": 2}, {"a": 1}, None, Given()) == {"a": 1, "b": 2}


def test_one_value_after_another_is_set() -> None:
    first = environment_values({}, {}, {"m": {"a": 1}}, Given(sets=("m.b=2",)))
    assert environment_values(first, {"m": {"a": 1}}, {"m": {"a": 1}}, Given(sets=("m.c=3",))) == {
        "m": {"a": 1, "b": 2, "c": 3}
    }


def test_a_null_that_is_set_stays_and_takes_a_default_of_the_chart_away() -> None:
    assert environment_values({"a": 1}, {}, {}, Given(sets=("a=null",))) == {"a": None}


def test_a_value_that_is_taken_away_is_the_settings_again() -> None:
    assert environment_values({"m": {"a": 3}}, {"m": {"a": 1}}, {"m": {"a": 1}}, Given(unset=("m.a",))) == {
        "m": {"a": 1}
    }
    assert environment_values({"m": {"a": 3}}, {}, {}, Given(unset=("m.a",))) == {}


def test_files_take_the_place_of_all_that_is_its_own() -> None:
    given = Given(files={"b": 2}, sets=("c=3",))
    assert environment_values({"a": 3, "d": 1}, {"d": 1}, {"d": 1}, given) == {"d": 1, "b": 2, "c": 3}
