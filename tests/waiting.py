"""Tests wait for a condition and never merely for time to pass."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from symphony_charts.system.processes import read_stat

_Value = TypeVar("_Value")


def eventually(
    check: Callable[[], _Value | None], timeout_s: float = 60, what: Callable[[], str] | str = "it did not come"
) -> _Value:
    """What `check` gives once that is true; fails with `what` and the last answer when it is not in time."""
    deadline = time.monotonic() + timeout_s
    asked = time.monotonic()
    while not (value := check()):
        if time.monotonic() > deadline:
            said = what if isinstance(what, str) else what()
            raise AssertionError(f"not within {timeout_s:g} s: {said}; the last answer was {value!r}")
        # What is dear to ask is asked less often: it would slow down what is waited for.
        time.sleep(max(0.05, time.monotonic() - asked))
        asked = time.monotonic()
    return value


def is_alive(pid: int) -> bool:
    """Return True if `pid` is a process that runs; a zombie does not."""
    stat = read_stat(pid) if pid > 0 else None
    return stat is not None and not stat.is_dead
