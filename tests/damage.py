"""Damage to foreign files at any place of their data."""

from __future__ import annotations

import copy
from typing import Any

ODD: tuple[object, ...] = (
    *(None, True, 0, -1, 2**63, 1.5, "", "x", "1Gi", "running"),
    *([], {}, [None], {"a": None}, [[]], [{}], ["a", "a"]),
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return every map and list in `value`, with each of its keys."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    return [place for key in keys for place in [(value, key), *places(value[key])]]


def spoil(holder: Any, key: Any, odd: object) -> None:
    """Put a copy of `odd` at a place: a shared value would be damaged at both places, and could come to hold itself."""
    holder[key] = copy.deepcopy(odd)
