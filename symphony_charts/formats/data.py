"""Read plain data of unknown shape, and merge overlays into it with Kubernetes' strategic merge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias, TypeGuard

from symphony_charts.formats.merge_keys import MERGE_KEYS

Values: TypeAlias = dict[str, object]
"""Values of a chart."""


def sub(value: object, *keys: str) -> dict[str, object]:
    """Return the map below `keys`, empty if there is none."""
    for key in keys:
        if not isinstance(value, dict):
            return {}
        value = value.get(key)
    return value if isinstance(value, dict) else {}


def maps(value: object, key: str) -> list[dict[str, object]]:
    """Return the maps in the list at `key`."""
    items = value.get(key) if isinstance(value, dict) else None
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


# Maps merge. Lists that have a merge key (`symphony_charts.formats.merge_keys`) merge item by item: existing items
# keep their place, new ones follow. Everything else is replaced, including other lists. Unlike in a patch, new items
# come last, so that a variable may refer to those before it, and nothing is deleted: an overlay holds no null. The
# templates' ``symph.overlay`` does the same. Source: k8s.io/apimachinery, pkg/util/strategicpatch.


def merge_overlay(base: Mapping[str, object], over: Mapping[str, object]) -> dict[str, object]:
    """Return `base` with `over` merged in; both stay unchanged, and the result shares unmerged parts."""
    merged = dict(base)
    for key, value in over.items():
        merged[key] = _merge(merged[key], value, key) if key in merged else value
    return merged


def is_merged_by_item(field: str, value: object) -> bool:
    """Return True if the list `value` of `field` merges item by item instead of being replaced."""
    key = MERGE_KEYS.get(field)
    return key is not None and _is_list(value) and (_are_keyed(value, key) if key else _are_plain(value))


def overlay_at(path: Sequence[str | int], value: object, whole: object, field: str = "") -> object:
    """Return the overlay that sets `path` of the object `whole`, which is in `field`, to `value`.

    A step into a list that merges by item becomes the item's key; for any other list, the overlay has the whole list.
    """
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(step, str):
        inside = whole.get(step) if isinstance(whole, Mapping) else None
        return {step: overlay_at(rest, value, inside, step)}
    items = list(whole) if _is_list(whole) else []
    placed, key = overlay_at(rest, value, items[step]), MERGE_KEYS.get(field)
    if rest and key and _are_keyed(items, key) and isinstance(placed, Mapping):
        return [{key: items[step][key], **placed}]
    return [*items[:step], _merge(items[step], placed, "") if rest else value, *items[step + 1 :]]


def _merge(base: object, over: object, field: str) -> object:
    if isinstance(base, Mapping) and isinstance(over, Mapping):
        return merge_overlay(base, over)
    key = MERGE_KEYS.get(field)
    if key is not None and _is_list(base) and _is_list(over):
        if key and _are_keyed(base, key) and _are_keyed(over, key):
            return _merge_items(base, over, key)
        if not key and _are_plain(base) and _are_plain(over):
            return list(dict.fromkeys([*base, *over]))
    return over


def _merge_items(
    base: Sequence[Mapping[str, object]], over: Sequence[Mapping[str, object]], key: str
) -> list[Mapping[str, object]]:
    merged = list(base)
    places: dict[object, int] = {}
    for index, item in enumerate(merged):
        places.setdefault(item[key], index)
    for item in over:
        index = places.setdefault(item[key], len(merged))
        if index == len(merged):
            merged.append(item)
        else:
            merged[index] = merge_overlay(merged[index], item)
    return merged


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, (list, tuple))


def _are_keyed(items: Sequence[object], key: str) -> TypeGuard[Sequence[Mapping[str, object]]]:
    """Return True if every item is a map with a text or a number at `key`."""
    return all(isinstance(item, Mapping) and _is_key(item.get(key)) for item in items)


def _is_key(value: object) -> bool:
    return isinstance(value, (str, int, float)) and not isinstance(value, bool)


def _are_plain(items: Sequence[object]) -> TypeGuard[Sequence[str]]:
    return all(isinstance(item, str) for item in items)
