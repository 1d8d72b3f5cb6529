"""Early stop of trials that are hopeless beside others; none is ended by chance."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symphony_charts.sweep.metrics import Goal, Rule, TrialComparison

RULES: tuple[Rule, ...] = ("median", "halving")


def judge(rule: Rule, *others: float, goal: Goal = "min", grace: float = 1) -> TrialComparison:
    made = TrialComparison(metric="loss", goal=goal, rule=rule, grace=grace)
    for index, value in enumerate(others):
        made.see(f"other-{index}", {"loss": [(float(step), value) for step in range(10)]})
    return made


def verdict(made: TrialComparison, *values: float) -> str:
    made.see("own", {"loss": [(float(step), value) for step, value in enumerate(values)]})
    return made.verdict("own")


@pytest.mark.parametrize("rule", RULES)
def test_the_worst_is_hopeless_and_the_best_is_not(rule: Rule) -> None:
    assert "loss 9 by step" in verdict(judge(rule, 1, 2, 3, 4), 9, 9, 9, 9)
    assert verdict(judge(rule, 1, 2, 3, 4), 0.5, 0.5, 0.5, 0.5) == ""


@pytest.mark.parametrize("rule", RULES)
def test_higher_is_better_where_the_goal_says_so(rule: Rule) -> None:
    assert verdict(judge(rule, 1, 2, 3, 4, goal="max"), 9, 9, 9, 9) == ""
    assert verdict(judge(rule, 1, 2, 3, 4, goal="max"), 0, 0, 0, 0) != ""


@pytest.mark.parametrize("rule", RULES)
def test_nothing_is_said_before_the_grace_is_over_or_of_too_few_others(rule: Rule) -> None:
    assert verdict(judge(rule, 1, 2, 3, 4, grace=5), 9, 9, 9) == ""
    assert verdict(judge(rule, 1, 2), 9, 9, 9) == ""
    assert verdict(judge(rule, 1, 2, 3, 4)) == ""


def test_one_that_was_good_once_is_not_worse_than_the_median() -> None:
    assert verdict(judge("median", 1, 2, 3, 4), 0.1, 9, 9, 9) == ""


def test_others_that_have_not_come_so_far_do_not_count() -> None:
    made = judge("median", 1, 2, 3, 4)
    assert verdict(made, *[9.0] * 12) == ""


@given(st.sampled_from(RULES), st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=12, unique=True))
def test_the_best_of_any_is_never_hopeless(rule: Rule, values: list[float]) -> None:
    made = judge(rule, *values)
    best = min(range(len(values)), key=values.__getitem__)
    assert made.verdict(f"other-{best}") == ""
