"""How an overlay changes an object: maps merge, lists of named things merge by name, everything else is replaced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = ["is_named_list", "merge_overlay", "place"]


def merge_overlay(base: object, over: object) -> object:
    """`base` with `over` laid on it; neither is changed."""
    if isinstance(base, Mapping) and isinstance(over, Mapping):
        merged = dict(base)
        for key, value in over.items():
            merged[key] = merge_overlay(merged[key], value) if key in merged else value
        return merged
    if is_named_list(base) and is_named_list(over):
        return _merge_named(base, over)
    return over


def is_named_list(value: object) -> bool:
    """Whether `value` is a list whose items are all maps with a `name`; an empty list is none."""
    return (
        isinstance(value, (list, tuple))
        and bool(value)
        and all(isinstance(item, Mapping) and isinstance(item.get("name"), str) for item in value)
    )


def place(path: Sequence[str | int], value: object, whole: object) -> object:
    """The overlay that puts `value` at `path` of the object `whole`.

    A step into a list of named things becomes the name; into any other list, the whole list is written again.
    """
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(step, str):
        inside = whole.get(step) if isinstance(whole, Mapping) else None
        return {step: place(rest, value, inside)}
    items = list(whole) if isinstance(whole, (list, tuple)) else []
    changed = merge_overlay(items[step], placed) if rest and (placed := place(rest, value, items[step])) else value
    if rest and is_named_list(items):
        return [{"name": items[step]["name"], **_mapping(place(rest, value, items[step]))}]
    return [*items[:step], changed, *items[step + 1 :]]


def _merge_named(base: object, over: object) -> list[object]:
    merged: dict[str, object] = {item["name"]: item for item in _items(base)}
    for item in _items(over):
        name = item["name"]
        merged[name] = merge_overlay(merged[name], item) if name in merged else item
    return list(merged.values())


def _items(value: object) -> list[dict[str, str]]:
    return list(value) if isinstance(value, (list, tuple)) else []


def _mapping(value: object) -> dict[str, object]:
    return dict(value) if isinstance(value, Mapping) else {}
