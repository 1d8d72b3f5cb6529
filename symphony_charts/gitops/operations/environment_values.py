"""The values of an environment are those of the settings, over them its own, over them what a command gives.

A pointer keeps both: `values` is what runs, `settings` the part that the settings said when it was written. What
differs between the two is the environment's own, whoever wrote it, so later settings count wherever it says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from symphony_charts.chart.values.set_values import Overrides, user_values
from symphony_charts.formats.data import Values

__all__ = ["Given", "environment_values"]

_ABSENT = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The options of a command about an environment's values.

    `files` of None keeps its own, else they take the place of all of them; `sets` are assigned as helm's ``--set`` is;
    `unset` are paths at which it shall have none of its own.
    """

    files: Mapping[str, object] | None = None
    sets: tuple[str, ...] = ()
    unset: tuple[str, ...] = ()


def environment_values(values: Values, old_settings: Values, settings: Values | None, given: Given) -> Values:
    """Return the values of an environment that has `values` now, of which `old_settings` came from settings.

    `settings` are those of today, None where there are none to be read.
    """
    settings = old_settings if settings is None else settings
    if given.files is None:
        result = _rebased(values, old_settings, settings)
    else:
        result = user_values(Overrides(files=(settings, given.files)))
    for path in given.unset:
        for keys in _leaves(user_values(Overrides(sets=(f"{path}=null",)))):
            result = _replaced(result, keys, _at(settings, keys))
    return user_values(Overrides(files=(result,), sets=given.sets))


def _rebased(values: Mapping[str, object], old: Mapping[str, object], new: Mapping[str, object]) -> Values:
    result: Values = {}
    for key in dict.fromkeys((*values, *new)):
        own, before, after = (layer.get(key, _ABSENT) for layer in (values, old, new))
        if own == before:
            kept = after
        elif isinstance(own, Mapping) and (isinstance(before, Mapping) or isinstance(after, Mapping)):
            kept = _rebased(own, _map(before), _map(after)) or _ABSENT
        elif own is _ABSENT and isinstance(after, Mapping):
            kept = _rebased({}, _map(before), after) or _ABSENT
        else:
            kept = own
        if kept is not _ABSENT:
            result[key] = kept
    return result


def _map(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _leaves(values: Mapping[str, object], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, (*above, key))
        else:
            yield (*above, key)


def _at(values: object, keys: Sequence[str]) -> object:
    for key in keys:
        values = values.get(key, _ABSENT) if isinstance(values, Mapping) else _ABSENT
    return values


def _replaced(values: Mapping[str, object], keys: Sequence[str], value: object) -> Values:
    """`values` with `value` at `keys`; without anything there, nor maps that held nothing else, where it is absent."""
    result, (key, *rest) = dict(values), keys
    if rest:
        inner = _replaced(_map(values.get(key)), rest, value)
        value = inner or _ABSENT
    if value is _ABSENT:
        result.pop(key, None)
    else:
        result[key] = value
    return result
