"""The tree of errors: plain classes that behave as records do."""

from __future__ import annotations

import pickle

import pytest

from symphony_charts.errors import Problem, SpecError, SymphError, ToolFailed, ToolMissing, UsageError


def test_problems_are_equal_by_what_they_say() -> None:
    assert Problem(what="a", path="b") == Problem(what="a", path="b")
    assert len({Problem(what="a"), Problem(what="a"), Problem(what="a", next="b")}) == 2


def test_a_problem_moves_to_another_path_and_an_error_is_no_other_that_says_the_same() -> None:
    moved = Problem(what="a", path="b", next="c").moved_to("d")
    assert repr(moved) == "Problem(what='a', path='d', next='c')"
    assert UsageError("a") != UsageError("a")
    assert repr(UsageError("a", next="b")) == "UsageError(what='a', at='', next='b')"


def test_a_missing_extra_says_how_it_is_installed() -> None:
    assert ToolMissing("a", extra="seal").next == "install symphony-charts with the extra `seal`"
    assert ToolMissing("a", next="b", extra="seal").next == "b"


@pytest.mark.parametrize("error", [UsageError("a", "b", "c"), ToolFailed("a", argv=("git",), status=1)])
def test_an_error_survives_pickling(error: SymphError) -> None:
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - of our own
    assert (type(copy), vars(copy)) == (type(error), vars(error))


def test_every_fault_of_a_spec_is_said() -> None:
    assert str(SpecError([Problem(what="a"), Problem(what="b", next="c")])) == "a\nb\n  next: c"
