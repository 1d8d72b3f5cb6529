"""Overlays of the emitted pod, laid on each other."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["merge_overlay"]


def merge_overlay(base: Mapping[str, object], over: Mapping[str, object]) -> dict[str, object]:
    """`over` laid on `base`: maps merge, lists are joined without repeats, anything else is replaced."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            merged[key] = merge_overlay(old, value)
        elif isinstance(old, list) and isinstance(value, list):
            merged[key] = [*old, *(item for item in value if item not in old)]
        else:
            merged[key] = value
    return merged
