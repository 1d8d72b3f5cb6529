"""Values merge over a chart's own as helm merges them; `overrides_between` finds what to merge for a wanted result.

Source: helm/helm, pkg/chart/common/util/coalesce.go (maps merge, lists replace, null deletes).
"""

from __future__ import annotations

from collections.abc import Mapping

from symphony_charts.chart.render.values import Values
from symphony_charts.errors import Problem, SpecError

__all__ = ["merge", "overrides_between"]


def merge(base: Mapping[str, object], over: Mapping[str, object]) -> Values:
    """`base` with `over` on top: maps merge, all else is replaced; a null takes a default away.

    A null for what `base` does not have stays, as it does in helm. Neither is changed; parts of both are shared.
    """
    result = dict(base)
    for key, value in over.items():
        old = result.get(key)
        if value is None and key in result:
            del result[key]
        elif isinstance(value, Mapping) and isinstance(old, dict):
            result[key] = merge(old, value)
        else:
            result[key] = value
    return result


# Says whose values these are; it stays that of the chart.
_IDENTITY = "specDigest"


def overrides_between(base: Mapping[str, object], wanted: Mapping[str, object]) -> Values:
    """The smallest values that, merged over `base`, give `wanted`; `specDigest` stays as it is.

    Raises SpecError, all faults at once, where `wanted` lacks what `base` has: values can only add and replace.
    """
    problems: list[Problem] = []
    overrides = _between(
        {key: value for key, value in base.items() if key != _IDENTITY},
        {key: value for key, value in wanted.items() if key != _IDENTITY},
        "values",
        problems,
    )
    if problems:
        raise SpecError(problems)
    return overrides


def _between(base: Mapping[str, object], wanted: Mapping[str, object], path: str, problems: list[Problem]) -> Values:
    missing = [key for key in base if key not in wanted]
    problems += [
        Problem(
            what="a chart's values cannot take away what it has",
            path=f"{path}.{key}",
            next="set it to another value, or make a chart of its own",
        )
        for key in missing
    ]
    overrides: Values = {}
    for key, value in wanted.items():
        old = base.get(key)
        if isinstance(value, Mapping) and isinstance(old, Mapping):
            inner = _between(old, value, f"{path}.{key}", problems)
            overrides |= {key: inner} if inner else {}
        elif key not in base or old != value or type(old) is not type(value):
            overrides[key] = value
    return overrides
