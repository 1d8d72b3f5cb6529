"""Values as the templates read them: the twin of ``charts/symph/templates/_values.tpl``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

from symphony_charts.errors import SpecError
from symphony_charts.formats import go_json
from symphony_charts.formats.overlay import merge_overlay

__all__ = ["Values", "integer", "is_true", "normalise", "ordered", "said", "scalar", "strings", "texts"]

Values: TypeAlias = dict[str, object]

_WHOLE = re.compile(r"0|[1-9][0-9]{0,9}")
_TOP_MAPS = ("configs", "defaults", "groups", "networkPolicy", "secrets", "services", "tests", "workload")
_MAX_EXACT = 2**53


def normalise(values: Mapping[str, object]) -> Values:
    """A copy of `values` without nulls, with numbers as a float64 holds them and every top-level map there.

    Raises SpecError for a null in a list, which is what `--set command[1]=b.py` leaves behind.
    """
    result = _pruned_map(values, "values")
    for key in _TOP_MAPS:
        result.setdefault(key, {})
    return result


def texts(value: object) -> list[str]:
    """A list of strings: a lone scalar is a list of one, None an empty one."""
    if isinstance(value, list):
        return [scalar(item) for item in value]
    return [] if value is None else [scalar(value)]


def strings(value: object) -> dict[str, str]:
    """A map with the text of each value."""
    return {key: scalar(item) for key, item in sorted(value.items())} if isinstance(value, dict) else {}


def scalar(value: object) -> str:
    """The text of a string, number or boolean, as the chart prints it."""
    return value if isinstance(value, str) else go_json.dumps(value)


def integer(value: object, default: int | None, what: str) -> int:
    """A whole number given as a number or as its digits; `default` where it is absent.

    Raises SpecError with `what` for anything else.
    """
    if value is None and default is not None:
        return default
    if type(value) is int and 0 <= value < 10**10:
        return value
    text = scalar(value)
    if _WHOLE.fullmatch(text) is None:
        raise SpecError.one(f"{what} must be a whole number, not {text}", what)
    return int(text)


def is_true(value: object) -> bool:
    """Whether a value says yes, as a boolean or as the text ``true``."""
    return value is True or value == "true"


def said(own: Mapping[str, object], defaults: Mapping[str, object], key: str, own_key: str = "") -> object:
    """What a group or container says under a key (`own_key` where it has another name there), else the default.

    What is said counts even where it is empty: false, "", [] and {} take the default away. Other maps merge into it.
    """
    default, name = defaults.get(key), own_key or key
    if name not in own:
        return default
    value = own[name]
    return merge_overlay(default, value) if value and isinstance(value, dict) and isinstance(default, dict) else value


def ordered(items: Mapping[str, object], order: object) -> list[str]:
    """The keys of `items`: those that `order` lists first, the rest sorted."""
    listed = [key for key in dict.fromkeys(texts(order)) if key in items]
    return [*listed, *sorted(set(items).difference(listed))]


def _pruned_map(values: Mapping[str, object], path: str) -> Values:
    return {str(key): _pruned(value, f"{path}.{key}") for key, value in values.items() if value is not None}


def _pruned(value: object, path: str) -> object:
    if isinstance(value, str | bool):
        return value
    if isinstance(value, dict):
        return _pruned_map(value, path)
    if isinstance(value, list | tuple):
        return [_pruned_item(item, f"{path}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, float) and value.is_integer() and abs(value) <= _MAX_EXACT and str(value) != "-0.0":
        return int(value)
    if isinstance(value, int) and abs(value) > _MAX_EXACT:
        return float(value)
    return value


def _pruned_item(value: object, path: str) -> object:
    if value is None:
        raise SpecError.one(f"{path} is null", path, "give the whole list")
    return _pruned(value, path)
