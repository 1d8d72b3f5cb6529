"""Waiting for files to change, told by the kernel; Linux only."""

from __future__ import annotations

import ctypes
import os
import select
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

__all__ = ["Changes"]

_MODIFY, _MOVED_TO, _CREATE, _DELETE, _DELETE_SELF = 0x2, 0x80, 0x100, 0x200, 0x400
_WANTED = _MODIFY | _MOVED_TO | _CREATE | _DELETE | _DELETE_SELF
_LIBC = ctypes.CDLL(None, use_errno=True)


class Changes:
    """Changes of files, and of folders (what comes and goes there). Raises OSError where none can be watched."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._descriptor: int = _LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._descriptor < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")
        for path in paths:
            self.add(path)

    def add(self, path: Path) -> None:
        """Watch this as well; what is not there is not watched, what is already is not watched twice."""
        _LIBC.inotify_add_watch(self._descriptor, os.fsencode(path), _WANTED)

    def wait(self, timeout_s: float | None) -> bool:
        """Whether something changed before the time was over; all that has is taken as seen."""
        ready, _, _ = select.select([self._descriptor], [], [], timeout_s)
        if not ready:
            return False
        try:
            # What changed is looked at anyway; draining the events is enough.
            while os.read(self._descriptor, 1 << 16):
                pass
        except BlockingIOError:
            pass
        return True

    def __enter__(self) -> Changes:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)
