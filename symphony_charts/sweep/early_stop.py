"""A trial is hopeless when others were better after as many steps: by the median rule, or by successive halving.

Sources: Golovin et al., "Google Vizier" (KDD 2017), 3.1, the median stopping rule; Li et al., "A System for Massively
Parallel Hyperparameter Tuning" (MLSys 2020), the rungs of asynchronous successive halving.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from symphony_charts.sweep.metrics import Goal, Series

__all__ = ["Judge", "Rule", "Stopper"]

Rule = Literal["median", "halving"]
Points = Sequence[tuple[float, float]]

# Fewer others say nothing: the first trials of a sweep would end each other by chance.
_LEAST = 3
# Of those that reach a rung one in so many goes on, to a rung that is so many times higher.
_FACTOR = 3


@dataclass(slots=True, kw_only=True)
class Judge:
    """Compares the trials of a sweep by `metric`; none is stopped before the step `grace`.

    It is told how each goes by `see`. Threads may use it at once: each writes what its own trial measured.
    """

    metric: str
    goal: Goal
    rule: Rule
    grace: float
    points: dict[str, Points] = field(default_factory=dict)

    def see(self, name: str, series: Series) -> None:
        """Take in what a trial has measured so far."""
        self.points[name] = list(series.get(self.metric, ()))

    def verdict(self, name: str) -> str:
        """Return why a trial is hopeless; empty if it is not."""
        own = self.points.get(name, ())
        others = {other: points for other, points in list(self.points.items()) if other != name}
        if not own or own[-1][0] < self.grace:
            return ""
        return self._median(own, others) if self.rule == "median" else self._halving(own, others)

    def _median(self, own: Points, others: Mapping[str, Points]) -> str:
        step = own[-1][0]
        means = [
            statistics.fmean(value for at, value in points if at <= step)
            for points in others.values()
            if points and points[0][0] <= step <= points[-1][0]
        ]
        best, middle = self._best(own), statistics.median(means) if means else 0.0
        if len(means) < _LEAST or not self._is_worse(best, middle):
            return ""
        return f"{self.metric} {best:.4g} at best by step {step:g}, the median of {len(means)} others is {middle:.4g}"

    def _halving(self, own: Points, others: Mapping[str, Points]) -> str:
        rung = max(self.grace, 1.0)
        while rung * _FACTOR <= own[-1][0]:
            rung *= _FACTOR
        value = self._best([point for point in own if point[0] <= rung] or own)
        there = [
            self._best(reached)
            for points in others.values()
            if points and points[-1][0] >= rung and (reached := [point for point in points if point[0] <= rung])
        ]
        better = sum(self._is_worse(value, other) for other in there)
        if len(there) < _LEAST or better < max(1, (len(there) + 1) // _FACTOR):
            return ""
        return f"{self.metric} {value:.4g} at best by step {rung:g}, {better} of {len(there)} others were better"

    def _best(self, points: Points) -> float:
        return (min if self.goal == "min" else max)(value for _, value in points)

    def _is_worse(self, value: float, other: float) -> bool:
        return value > other if self.goal == "min" else value < other


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopper:
    """Has a `judge` compare what trials measure, which `read` says of each by its name."""

    judge: Judge
    read: Callable[[str], Series]

    def look_at(self, name: str) -> str:
        """Return why a trial is hopeless; empty if it is not."""
        self.judge.see(name, self.read(name))
        return self.judge.verdict(name)
