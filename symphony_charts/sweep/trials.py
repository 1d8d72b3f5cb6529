"""A sweep is one experiment in many trials that differ in a few settings.

A setting is an environment variable that processes declare (`lr` or `LR`), or a path of the spec
(`processes.agent.replicas`). Trials are named after their settings, so that additional values rename nothing.
"""

from __future__ import annotations

import csv
import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from random import Random

from symphony_charts.errors import Problem, SpecError, UsageError
from symphony_charts.formats.names import nearest, shorten
from symphony_charts.formats.yaml_read import load
from symphony_charts.spec.data import from_data, to_data
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import processes_of

_MOST_TRIALS = 10_000
# Leaves room for the suffixes that a chart adds to the name of a release.
_LONGEST_NAME = 40
_STEP = re.compile(r"[^.\[\]]+|\[\d{1,4}\]")
# Forms of other tools, which would become one text or several broken ones.
_COMMAS = "write the values separated by commas, without brackets, as in {key}=0.1,0.2"
_RANGE = "write first..last or first..last..step, as in {key}=1..5 or {key}=0.1..0.5..0.1"
_ONE_NUMBER = r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?"
_MISREAD = {
    rf"^{_ONE_NUMBER}\s*:\s*{_ONE_NUMBER}(\s*:\s*{_ONE_NUMBER})?$": _RANGE,
    rf"(^|,)({_ONE_NUMBER}\.\.|\.\.{_ONE_NUMBER})(,|$)": _RANGE,
    rf"^{_ONE_NUMBER}(\s*;\s*|\s+){_ONE_NUMBER}": _COMMAS,
    r"""^[\[({\"'][^\])}"']*,.*[\])}"']$""": _COMMAS,
    r"^((np|numpy|torch|math)\.)?(range|arange|linspace|logspace|uniform|loguniform|choice)\(": _COMMAS,
}
# Numbers as programs write them; `007` and `1_000` are texts.
_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A setting and its values, in order; `equal` are omitted values that equal one of them."""

    key: str
    values: tuple[str, ...]
    equal: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A setting that is drawn between two numbers, uniformly or log-uniformly."""

    key: str
    low: float
    high: float
    is_log: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One experiment of a sweep: its name, and the text of each setting."""

    name: str
    settings: dict[str, str]


def parse_axis(text: str) -> Axis:
    """Return the axis of ``key=a,b,c`` or ``key=first..last[..step]`` (both ends). Raises UsageError."""
    key, values = _key_and_rest(text, "--grid", "lr=1e-3,1e-4 or seed=0..9")
    for pattern, step in _MISREAD.items():
        if re.search(pattern, values, re.ASCII | re.IGNORECASE):
            raise UsageError(f"--grid {text} is not a list of values or a range", next=step.format(key=key))
    choices = list(dict.fromkeys(part for item in values.split(",") for part in _expand(item, text)))
    first: dict[object, str] = {}
    for choice in choices:
        first.setdefault(_value_of(choice), choice)
    kept = set(first.values())
    equal = tuple(choice for choice in choices if choice not in kept)
    return Axis(key=key, values=tuple(first.values()), equal=equal)


def parse_points(text: str, where: str) -> tuple[dict[str, str], ...]:
    """Return the points of a CSV table: the first line names the settings, each other line is one point.

    Raises SpecError with all faults; `where` is the file.
    """
    rows = [row for row in csv.reader(text.splitlines()) if any(cell.strip() for cell in row)]
    keys = [cell.strip() for cell in rows[0]] if rows else []
    problems = []
    if len(rows) < 2:
        problems.append(
            Problem(what="the list of trials is empty", next="write a line with the settings, then a line per trial")
        )
    if not all(keys) or len(set(keys)) < len(keys):
        problems.append(Problem(what="the first line must name each setting exactly once", next="for example: lr,seed"))
    points = []
    for number, row in enumerate(rows[1:], 2):
        cells = [cell.strip() for cell in row]
        if len(cells) != len(keys) or not all(cells):
            what = f"point {number - 1} has {sum(map(bool, cells))} values for {len(keys)} settings"
            problems.append(Problem(what=what, path=f"[{number - 2}]", next="give each setting one value"))
        points.append(dict(zip(keys, cells, strict=False)))
    if problems:
        raise SpecError(problems, at=where)
    return tuple(points)


def parse_span(text: str, *, is_log: bool) -> Span:
    """Return the span of ``key=low..high``. Raises UsageError."""
    flag = "--loguniform" if is_log else "--uniform"
    key, rest = _key_and_rest(text, flag, "lr=1e-5..1e-2")
    low, _, high = rest.partition("..")
    try:
        span = Span(key=key, low=float(low), high=float(high), is_log=is_log)
    except ValueError as error:
        raise UsageError(
            f'{flag} takes KEY=LOW..HIGH, got "{text}"', next=f"for example: {flag} {key}=0.1..1"
        ) from error
    if not (math.isfinite(span.low) and math.isfinite(span.high) and span.low < span.high):
        raise UsageError(f'{flag} needs a lower end below the upper end, got "{text}"')
    if is_log and span.low <= 0:
        raise UsageError(f'--loguniform needs ends above 0, got "{text}"', next=f"draw uniformly: --uniform {text}")
    return span


def trials(
    base: str,
    axes: Sequence[Axis],
    spans: Sequence[Span] = (),
    points: Sequence[Mapping[str, str]] = (),
    *,
    draw: int | None = None,
    chance: Random | None = None,
) -> tuple[Trial, ...]:
    """Return the trials of the experiment `base`: every combination, the last axis changing fastest; or `draw` of them.

    Each of the `points`, if any, is combined with all the rest. Settings that are equal as numbers are one trial. Drawn
    trials differ from each other if there are enough combinations; they depend only on `chance`. Raises UsageError for
    one setting given twice, spans without `draw`, no settings, and more than `_MOST_TRIALS`.
    """
    keys = [axis.key for axis in axes] + [span.key for span in spans] + list(points[0] if points else ())
    if not keys:
        raise UsageError("this sweep varies no setting", next="for example: --grid lr=1e-3,1e-4 --grid seed=0..9")
    twice = sorted({key for key in keys if keys.count(key) > 1})
    if twice:
        raise UsageError(f"{', '.join(twice)} is given twice", next="give all its values in one --grid")
    if spans and draw is None:
        raise UsageError("--uniform and --loguniform need the number of trials", next="add --random N")
    size = math.prod(len(axis.values) for axis in axes) * max(len(points), 1)
    if (draw if draw is not None else size) > _MOST_TRIALS:
        raise UsageError(
            f"the sweep has {size if draw is None else draw} trials, at most {_MOST_TRIALS} are allowed",
            next="add --random N",
        )
    if draw is None or chance is None:
        settings = [_combination(axes, points, index) for index in range(size)]
    else:
        settings = list(_drawn(axes, points, spans, size, draw, chance))
    return _named(base, settings)


def trial_of(base: str, settings: Mapping[str, str]) -> Trial:
    return _named(base, [settings])[0]


def apply(experiment: Experiment, trial: Trial, metrics: str | None = None) -> Experiment:
    """Return the experiment of a trial, checked like a written one.

    If `metrics` names a file, processes get it as SYMPH_METRICS unless they declare that themselves. Raises SpecError
    with all faults: unknown settings, and settings that the spec refuses.
    """
    data = to_data(experiment)
    problems = [problem for key, text in trial.settings.items() for problem in _set(experiment, data, key, text)]
    if problems:
        raise SpecError(problems)
    for process in _processes(data) if metrics else ():
        env = process.setdefault("env", {})
        if isinstance(env, dict):
            env.setdefault("SYMPH_METRICS", metrics)
    data["name"] = trial.name
    return from_data(data)


def _key_and_rest(text: str, flag: str, example: str) -> tuple[str, str]:
    key, equals, rest = text.partition("=")
    if not equals or not key.strip() or not rest.strip():
        raise UsageError(f'{flag} takes KEY=VALUES, got "{text}"', next=f"for example: {flag} {example}")
    return key.strip(), rest.strip()


def _expand(item: str, text: str) -> Iterator[str]:
    """Yield the values of ``a..b`` or ``a..b..step``, exact in decimals; any other text is one value."""
    parts = item.split("..")
    try:
        numbers = [Decimal(part) for part in parts] if len(parts) in (2, 3) else []
    except InvalidOperation:
        numbers = []
    if len(numbers) == 2 and any(number != number.to_integral_value() for number in numbers if number.is_finite()):
        advice = f"write {item}..STEP, list the values with commas, or draw them: --uniform {text} --random 10"
        raise UsageError(f'--grid needs the step from {numbers[0]} to {numbers[1]} in "{text}"', next=advice)
    if not numbers or not all(number.is_finite() for number in numbers):
        if not item:
            raise UsageError(f'--grid has an empty value in "{text}"')
        yield item
        return
    first, last = numbers[:2]
    step = numbers[2] if len(numbers) == 3 else Decimal(1 if last >= first else -1)
    count = (last - first) / step if step else Decimal(-1)
    if count < 0 or count >= _MOST_TRIALS:
        raise UsageError(f'--grid cannot step from {first} to {last} by {step} in "{text}"')
    yield from (format((first + step * index).normalize(), "f") for index in range(int(count) + 1))


def _value_of(text: str) -> object:
    return Decimal(text) if _NUMBER.fullmatch(text) else text


def _combination(axes: Sequence[Axis], points: Sequence[Mapping[str, str]], index: int) -> dict[str, str]:
    """Return combination number `index`, without building the whole product."""
    chosen: dict[str, str] = {}
    for axis in reversed(axes):
        index, position = divmod(index, len(axis.values))
        chosen[axis.key] = axis.values[position]
    return {**(points[index] if points else {}), **{axis.key: chosen[axis.key] for axis in axes}}


def _drawn(
    axes: Sequence[Axis],
    points: Sequence[Mapping[str, str]],
    spans: Sequence[Span],
    size: int,
    draw: int,
    chance: Random,
) -> Iterator[dict[str, str]]:
    # A draw between two numbers differs anyway; without one, no combination comes twice.
    indexes = [chance.randrange(size) for _ in range(draw)] if spans else chance.sample(range(size), min(draw, size))
    for index in indexes:
        chosen = _combination(axes, points, index)
        for span in spans:
            scale, back = (math.log, math.exp) if span.is_log else (float, float)
            chosen[span.key] = f"{back(chance.uniform(scale(span.low), scale(span.high))):.6g}"
        yield chosen


def _named(base: str, given: Sequence[Mapping[str, str]]) -> tuple[Trial, ...]:
    different: dict[object, Mapping[str, str]] = {}
    for chosen in given:
        different.setdefault(tuple((key, _value_of(text)) for key, text in chosen.items()), chosen)
    settings = list(different.values())
    plain = ["-".join([base, *(_word(key, text) for key, text in chosen.items())]) for chosen in settings]
    twins = {name for name in plain if plain.count(name) > 1} if len(set(plain)) < len(plain) else set()
    by_name: dict[str, Trial] = {}
    for name, chosen in zip(plain, settings, strict=True):
        # If two trials would get the same name (`1e-3` and `1e_3`), a hash of the whole setting decides.
        exact = f"{name}-{hashlib.sha256(repr(sorted(chosen.items())).encode()).hexdigest()[:8]}"
        short = shorten(exact if name in twins else name, _LONGEST_NAME)
        by_name.setdefault(short, Trial(name=short, settings=dict(chosen)))
    return tuple(by_name.values())


def _word(key: str, text: str) -> str:
    """Return `lr1e-3` for `processes.learner.env.LR` and 1e-3."""
    slug = f"{key.rpartition('.')[2]}{'-' if key[-1:].isdigit() else ''}{text}".lower()
    return re.sub(r"[^a-z0-9]+", "-", slug.replace("+", "")).strip("-") or "x"


def _set(experiment: Experiment, data: dict[str, object], key: str, text: str) -> list[Problem]:
    if "." in key:
        return _set_path(data, key, text)
    declared = sorted({name for _, process in processes_of(experiment) for name in process.env})
    name = next((name for name in (key, key.upper()) if name in declared), None)
    if name is None:
        meant = nearest(key.upper(), declared)
        hint = f"did you mean {meant}? " if meant else ""
        next_step = f"{hint}declare it in a process (env: {{{key.upper()}: ...}}), or give a path of the spec"
        return [Problem(what=f'no process declares the variable "{key}"', path=f"sweep.{key}", next=next_step)]
    for process in _processes(data):
        env = process.get("env")
        if isinstance(env, dict) and name in env:
            env[name] = text
    return []


def _processes(data: Mapping[str, object]) -> Iterator[dict[str, object]]:
    lone, groups = data.get("processes"), data.get("groups")
    holders = [lone, *(group.get("processes") for group in groups.values())] if isinstance(groups, dict) else [lone]
    for holder in holders:
        if isinstance(holder, dict):
            yield from (process for process in holder.values() if isinstance(process, dict))


def _set_path(data: dict[str, object], key: str, text: str) -> list[Problem]:
    steps: list[str | int] = [int(step[1:-1]) if step[0] == "[" else step for step in _STEP.findall(key)]
    top = data.get(key.partition(".")[0])
    no_path = [Problem(what="is not a path of the spec", path=key, next="symph schema lists the keys")]
    node: object = data
    for step, following in pairwise(steps):
        if isinstance(node, dict) and isinstance(step, str):
            # A missing process or group is a typo; a missing option has its default.
            if node is top and step not in node:
                meant = nearest(step, node)
                return [Problem(what=f'{steps[0]} has no "{step}"', path=key, next=f'did you mean "{meant}"?')]
            node = node.setdefault(step, [] if isinstance(following, int) else {})
        elif isinstance(node, list) and isinstance(step, int) and step < len(node):
            node = node[step]
        else:
            return no_path
    last = steps[-1]
    value: object = text
    if "env" not in steps[-2:-1]:
        with suppress(ValueError):
            value = load(text)
    if isinstance(node, dict) and isinstance(last, str):
        node[last] = value
    elif isinstance(node, list) and isinstance(last, int) and last < len(node):
        node[last] = text
    else:
        return no_path
    return []
