"""Waiting for a condition, never for a fixed time."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from symphony_charts.system.processes import read_stat

_Value = TypeVar("_Value")


def eventually(
    check: Callable[[], _Value | None], timeout_s: float = 60, what: Callable[[], str] | str = "it did not come"
) -> _Value:
    """Return the first true result of `check`; on timeout, fail with `what` and the last result."""
    deadline = time.monotonic() + timeout_s
    asked = time.monotonic()
    while not (value := check()):
        if time.monotonic() > deadline:
            said = what if isinstance(what, str) else what()
            raise AssertionError(f"not within {timeout_s:g} s: {said}; the last answer was {value!r}")
        # Expensive checks run less often: they would slow down the work that they wait for.
        time.sleep(max(0.05, time.monotonic() - asked))
        asked = time.monotonic()
    return value


def is_alive(pid: int) -> bool:
    """Return True if `pid` is a running process; a zombie is not."""
    stat = read_stat(pid) if pid > 0 else None
    return stat is not None and not stat.is_dead


def running_below(folder: Path) -> list[str]:
    """Return the command lines of running processes that name `folder`."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return [words for words in found if str(folder) in words]
