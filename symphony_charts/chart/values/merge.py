"""Merge values as Helm does, and find the values to merge for a wanted result."""

from __future__ import annotations

from collections.abc import Mapping

from symphony_charts.formats.data import Values

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


def overrides_between(base: Mapping[str, object], wanted: Mapping[str, object]) -> Values:
    """Return the smallest values that, merged over `base`, give `wanted`. They never hold `specDigest`."""
    overrides: Values = {key: None for key in base if key not in wanted}
    for key, value in wanted.items():
        old = base.get(key)
        if isinstance(value, Mapping) and isinstance(old, Mapping):
            inner = overrides_between(old, value)
            overrides |= {key: inner} if inner else {}
        elif key not in base or old != value or type(old) is not type(value):
            overrides[key] = value
    # It says which chart the values belong to.
    overrides.pop("specDigest", None)
    return overrides
