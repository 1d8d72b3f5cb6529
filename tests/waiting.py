"""Tests wait for a condition and never merely for time to pass."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["eventually"]

_Value = TypeVar("_Value")


def eventually(
    check: Callable[[], _Value | None], timeout_s: float = 20, what: str = "it did not come in time"
) -> _Value:
    """What `check` gives once that is true; fails with `what` and the last answer when it is not in time."""
    deadline = time.monotonic() + timeout_s
    while not (value := check()):
        assert time.monotonic() < deadline, (what, value)
        time.sleep(0.05)
    return value
