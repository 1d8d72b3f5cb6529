"""`Terminals` finds out that a pane was closed while its program runs: that prints to nobody then, and has no log.

tmux tells nobody about it, and its programs ignore the hang-up. But the kernel tells (inotify) which terminals go.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from symphony_charts.local.supervisor.event_loop import Loop

__all__ = ["Terminals"]

_FOLDER = "/dev/pts"
_IN_DELETE = 0x200
# struct inotify_event: watch, mask, cookie, length of the name (inotify(7)).
_HEAD = struct.Struct("iIII")
if sys.platform != "win32":
    _LIBC = ctypes.CDLL(None, use_errno=True)
# A tmux that is killed closes its terminals a moment before it is gone, and should be known as the cause, in seconds.
_PAUSE_S = 0.2


class Terminals:
    """The terminals of the programs of a run; `closed` is called with a slot and its program whose terminal is gone."""

    def __init__(self, loop: Loop, closed: Callable[[int, int], None]) -> None:
        self._loop, self._closed = loop, closed
        self._programs: dict[str, tuple[int, int]] = {}
        self._descriptor: int = _LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._descriptor >= 0 and _LIBC.inotify_add_watch(self._descriptor, _FOLDER.encode(), _IN_DELETE) >= 0:
            loop.watch(self._descriptor, self._read)

    def follow(self, slot: int, pid: int) -> None:
        """Watch the terminal that the program `pid` of `slot` began with."""
        name = _terminal_of(pid).removeprefix(f"{_FOLDER}/")
        if name.isdigit():
            self._programs[name] = (slot, pid)
        elif name:
            self._look(slot, pid)

    def _read(self) -> None:
        for name in self._names():
            if name in self._programs:
                self._loop.later(_PAUSE_S, functools.partial(self._look, *self._programs[name]))

    def _look(self, slot: int, pid: int) -> None:
        # Numbers of terminals are used again at once; the program knows whether it still has its own.
        if _terminal_of(pid).endswith(" (deleted)"):
            self._closed(slot, pid)

    def _names(self) -> Iterator[str]:
        with contextlib.suppress(BlockingIOError):
            while events := os.read(self._descriptor, 1 << 16):
                offset = 0
                while offset < len(events):
                    *_, length = _HEAD.unpack_from(events, offset)
                    start = offset + _HEAD.size
                    yield events[start : start + length].rstrip(b"\0").decode()
                    offset = start + length


def _terminal_of(pid: int) -> str:
    with contextlib.suppress(OSError):
        return str(Path(f"/proc/{pid}/fd/0").readlink())
    return ""
