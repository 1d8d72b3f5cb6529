"""Read the metrics of trials, compare trials by them, and stop hopeless ones early."""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from symphony_charts.errors import UsageError

# A line with a JSON object gives each number in it; any other line gives each `name=number` or `name: number`.

Goal = Literal["min", "max"]
Series = dict[str, list[tuple[float, float]]]
"""The points of each metric as step and value, in the order in which they were written."""

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_PAIR = re.compile(rf"(?<![\w.])([A-Za-z_][\w./-]*)(?:\s*=\s*|:\s+)({_NUMBER})(?![\w.]*\w)", re.ASCII)
# Names of step counters, by priority.
_STEPS = ("step", "global_step", "iteration", "iter", "epoch")
_HIGHER = re.compile(r"reward|return|score|acc|auc|f1|success|win|throughput", re.IGNORECASE)


def pattern_of(text: str) -> re.Pattern[str]:
    """Return a regular expression that finds numbers. Raises UsageError if it is invalid or has no named group."""
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise UsageError(f'"{text}" is not a valid regular expression: {error}') from error
    if not pattern.groupindex:
        raise UsageError(f'no group of "{text}" has a name', next=r"for example: --pattern 'loss is (?P<loss>[\d.]+)'")
    return pattern


def numbers_in(line: str, pattern: re.Pattern[str] | None = None) -> dict[str, float]:
    """Return the finite numbers of a line by name, or only those in groups of a `pattern`."""
    text, found = line.strip(), dict[str, float]()
    if pattern is not None:
        for name, digits in (pair for match in pattern.finditer(line) for pair in match.groupdict().items()):
            with suppress(ValueError):
                found[name] = float(digits or "")
        return {name: number for name, number in found.items() if math.isfinite(number)}
    if text.startswith("{"):
        data = None
        with suppress(ValueError, RecursionError):
            data = json.loads(text)
        if isinstance(data, dict):
            pairs = ((str(key), value) for key, value in data.items() if type(value) in (int, float))
            return {key: float(value) for key, value in pairs if abs(value) < 1e308 and math.isfinite(value)}
    return {name: number for name, digits in _PAIR.findall(text) if math.isfinite(number := float(digits))}


def series_of(lines: Iterable[str], pattern: re.Pattern[str] | None = None) -> Series:
    """Return the metrics of one trial from its output and file, by the groups of a `pattern` if given."""
    series: Series = {}
    for line in lines:
        numbers = numbers_in(line, pattern)
        step = next((numbers[name] for name in _STEPS if name in numbers), None)
        for name, value in numbers.items():
            if name not in _STEPS:
                points = series.setdefault(name, [])
                points.append((float(len(points)) if step is None else step, value))
    return series


def goal_of(metric: str) -> Goal:
    """Return "max" if a metric of this name is usually better when higher, else "min"."""
    return "max" if _HIGHER.search(metric) else "min"


def best_of(last: Mapping[str, float], goal: Goal) -> str | None:
    """Return the trial with the best last value; None if there is no value."""
    return (max if goal == "max" else min)(last, key=last.__getitem__, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """A metric over trials that differ in some settings only: count, mean and standard deviation."""

    settings: dict[str, str]
    count: int
    mean: float
    deviation: float


def means_over(keys: Sequence[str], settings: Mapping[str, Mapping[str, str]], last: Mapping[str, float]) -> list[Mean]:
    """Return the means of `last` over the settings in `keys`, in the order of the trials."""
    groups: dict[tuple[tuple[str, str], ...], list[float]] = {}
    for name, chosen in settings.items():
        if name in last:
            rest = tuple((key, text) for key, text in chosen.items() if key not in keys)
            groups.setdefault(rest, []).append(last[name])
    return [
        Mean(
            settings=dict(rest),
            count=len(values),
            mean=statistics.fmean(values),
            deviation=statistics.stdev(values) if len(values) > 1 else 0.0,
        )
        for rest, values in groups.items()
    ]


# Sources: Golovin et al., "Google Vizier" (KDD 2017), 3.1, the median stopping rule; Li et al., "A System for Massively
# Parallel Hyperparameter Tuning" (MLSys 2020), the rungs of asynchronous successive halving.

Rule = Literal["median", "halving"]
Points = Sequence[tuple[float, float]]

# Minimum number of others to compare with: else the first trials of a sweep would end each other by chance.
_LEAST = 3
# One of this many trials at a rung continues, to a rung that is this many times higher.
_FACTOR = 3


@dataclass(slots=True, kw_only=True)
class TrialComparison:
    """Compare the trials of a sweep by `metric`; none is stopped before the step `grace`.

    `see` updates a trial. Threads may use it concurrently: each writes only its own trial's measurements.
    """

    metric: str
    goal: Goal
    rule: Rule
    grace: float
    points: dict[str, Points] = field(default_factory=dict)

    def see(self, name: str, series: Series) -> None:
        self.points[name] = list(series.get(self.metric, ()))

    def verdict(self, name: str) -> str:
        """Return the reason why a trial is hopeless; empty if it is not."""
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
        return (
            f"{self.metric} {best:.4g} by step {step:g} is worse than the median of {len(means)} others, {middle:.4g}"
        )

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
        return f"{self.metric} {value:.4g} by step {rung:g} is worse than {better} of {len(there)} other trials"

    def _best(self, points: Points) -> float:
        return (min if self.goal == "min" else max)(value for _, value in points)

    def _is_worse(self, value: float, other: float) -> bool:
        return value > other if self.goal == "min" else value < other


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopper:
    """Compare trials with a `judge`; `read` returns the metrics of a trial by its name."""

    judge: TrialComparison
    read: Callable[[str], Series]

    def look_at(self, name: str) -> str:
        """Return the reason why a trial is hopeless; empty if it is not."""
        self.judge.see(name, self.read(name))
        return self.judge.verdict(name)
