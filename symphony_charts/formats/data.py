"""Helpers look into plain data whose shape is not certain: objects of Kubernetes, values, overlays."""

from __future__ import annotations

from typing import TypeAlias

__all__ = ["Values", "maps", "sub"]

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
