"""Metrics from lines, the choice of the best trial, and means over seeds."""

from __future__ import annotations

import pytest

from symphony_charts.errors import UsageError
from symphony_charts.sweep.metrics import best_of, goal_of, means_over, numbers_in, pattern_of, series_of


@pytest.mark.parametrize(
    ("line", "numbers"),
    [
        ('{"step": 3, "loss": 0.5, "name": "x", "ok": true}', {"step": 3.0, "loss": 0.5}),
        ("epoch 3: loss=1e-3 val/acc: 0.97, lr = .1", {"loss": 1e-3, "val/acc": 0.97, "lr": 0.1}),
        ('{"loss": NaN}', {}),
        ('{"loss": 1', {}),
        ("version=1.2.3 at 12:30 in file.py:7 id=7f", {}),
        ("", {}),
    ],
)
def test_a_line_gives_its_numbers_by_name(line: str, numbers: dict[str, float]) -> None:
    assert numbers_in(line) == numbers


def test_points_stand_at_their_steps_or_one_after_the_other() -> None:
    lines = ["step=10 loss=3", "step=20 loss=2", "reward=1", "no number", "reward=5"]
    assert series_of(lines) == {"loss": [(10.0, 3.0), (20.0, 2.0)], "reward": [(0.0, 1.0), (1.0, 5.0)]}


def test_the_best_is_the_lowest_loss_and_the_highest_reward() -> None:
    last = {"a": 1.0, "b": 2.0}
    assert [best_of(last, goal_of(name)) for name in ("loss", "mean_reward")] == ["a", "b"]
    assert best_of({}, "min") is None


def test_means_leave_the_seeds_out() -> None:
    settings = {f"{lr}{seed}": {"lr": lr, "seed": seed} for lr in "ab" for seed in "01"}
    means = means_over(["seed"], settings, {"a0": 1.0, "a1": 3.0, "b0": 5.0})
    assert [(one.settings, one.count, one.mean) for one in means] == [({"lr": "a"}, 2, 2.0), ({"lr": "b"}, 1, 5.0)]
    assert means[0].deviation == pytest.approx(2**0.5)


def test_a_pattern_says_alone_which_numbers_count() -> None:
    pattern = pattern_of(r"loss is (?P<loss>\S+)(?: at (?P<step>\d+))?")
    lines = ["x=1 loss is 0.5 at 3", "x=2", "loss is nan", "loss is soon"]
    assert series_of(lines, pattern) == {"loss": [(3.0, 0.5)]}


@pytest.mark.parametrize("text", ["(", "loss is (.*)"])
def test_a_pattern_that_names_nothing_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        pattern_of(text)
