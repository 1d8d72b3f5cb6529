"""Metrics are numbers that trials print or write: how each goes with the steps, which trial is best, what seeds make.

A line that is a JSON object gives each number in it; any other line gives each ``name=number`` or ``name: number``.
"""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from symphony_charts.errors import UsageError

__all__ = ["Goal", "Mean", "Series", "best_of", "goal_of", "means_over", "numbers_in", "pattern_of", "series_of"]

Goal = Literal["min", "max"]
Series = dict[str, list[tuple[float, float]]]
"""The points of each metric as step and value, in the order in which they were written."""

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_PAIR = re.compile(rf"(?<![\w.])([A-Za-z_][\w./-]*)(?:\s*=\s*|:\s+)({_NUMBER})(?![\w.]*\w)", re.ASCII)
# What counts the steps, in the order in which it is looked for.
_STEPS = ("step", "global_step", "iteration", "iter", "epoch")
_HIGHER = re.compile(r"reward|return|score|acc|auc|f1|success|win|throughput", re.IGNORECASE)


def pattern_of(text: str) -> re.Pattern[str]:
    """Return a regular expression that says where numbers stand; raises UsageError, also where no group has a name."""
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise UsageError(f'"{text}" is no regular expression: {error}') from error
    if not pattern.groupindex:
        raise UsageError(f'no group of "{text}" has a name', next=r"for example: --pattern 'loss is (?P<loss>[\d.]+)'")
    return pattern


def numbers_in(line: str, pattern: re.Pattern[str] | None = None) -> dict[str, float]:
    """Return the finite numbers of a line by name, or only those of the groups of a `pattern`."""
    text = line.strip()
    if pattern is not None:
        said = (pair for match in pattern.finditer(line) for pair in match.groupdict().items())
        return {name: number for name, digits in said if (number := _finite(digits)) is not None}
    if text.startswith("{"):
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            data = None
        if isinstance(data, dict):
            pairs = ((str(key), value) for key, value in data.items() if type(value) in (int, float))
            return {key: float(value) for key, value in pairs if abs(value) < 1e308 and math.isfinite(value)}
    return {name: number for name, digits in _PAIR.findall(text) if math.isfinite(number := float(digits))}


def _finite(digits: str | None) -> float | None:
    try:
        number = float(digits or "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None


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
    """Return True if a metric of this name is usually better when it is higher or lower."""
    return "max" if _HIGHER.search(metric) else "min"


def best_of(last: Mapping[str, float], goal: Goal) -> str | None:
    """Return the trial whose last value is best; None where there is no value."""
    return (max if goal == "max" else min)(last, key=last.__getitem__, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """A metric over trials that differ in some settings only: how many, mean and standard deviation."""

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
