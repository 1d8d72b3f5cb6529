"""Damage to foreign files at any place of their data."""

from __future__ import annotations

import copy
import random
from typing import Any

ODD: tuple[object, ...] = (
    *(None, True, 0, -1, 2**63, 10**30, 1.5, "", "x", "x" * 300, "a b/c", "1Gi", "running"),
    *([], {}, [None], {"a": None}, [[]], [{}], [{"name": {}}], ["a", "a"]),
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return every map and list in `value`, with each of its keys."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    return [place for key in keys for place in [(value, key), *places(value[key])]]


def spoil(holder: Any, key: Any, odd: object) -> None:
    """Put a copy of `odd` at a place: a shared value would be damaged at both places, and could come to hold itself."""
    holder[key] = copy.deepcopy(odd)


def mangled(value: Any, chance: random.Random) -> Any:
    """Return a copy of `value` with one to three of its parts replaced or removed."""
    value = copy.deepcopy(value)
    for _ in range(chance.randint(1, 3)):
        if found := places(value):
            holder, key = chance.choice(found)
            if chance.random() < 0.3:
                del holder[key]
            else:
                spoil(holder, key, chance.choice(ODD))
    return value
