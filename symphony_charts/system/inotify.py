"""Watch files and the entries of folders for changes through inotify. Linux only.

Editors save in place, or write a new file and rename it. Both cause an event of the folder, so this watches folders,
never files. Source: inotify(7).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import struct
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self

MODIFY, MOVED_TO, CREATE, DELETE = 0x2, 0x80, 0x100, 0x200
OVERFLOW = 0x4000
"""The kernel's queue was full: events are lost."""
_DELETE_SELF = 0x400
_HEAD = struct.Struct("iIII")
if sys.platform != "win32":
    _LIBC = ctypes.CDLL(None, use_errno=True)


class Inotify:
    """A queue of events in files and folders; `descriptor` is readable while it is not empty. Raises OSError."""

    def __init__(self) -> None:
        self.descriptor: int = _LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.descriptor < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def add(self, path: Path, events: int) -> int:
        """Return the number of the watch on `path`, the same for a path that is watched already. Raises OSError."""
        watch: int = _LIBC.inotify_add_watch(self.descriptor, os.fsencode(path), events)
        if watch < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(path))
        return watch

    def events(self) -> Iterator[tuple[int, int, str]]:
        """Yield and forget the events so far: the watch (-1 for OVERFLOW), the event's bits, the entry of a folder."""
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self.descriptor, 1 << 16):
                offset = 0
                while offset < len(data):
                    watch, mask, _, size = _HEAD.unpack_from(data, offset)
                    offset += _HEAD.size + size
                    yield watch, mask, os.fsdecode(data[offset - size : offset].rstrip(b"\0"))

    def close(self) -> None:
        os.close(self.descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Changes(Inotify):
    """Changes of files, and of the entries of folders. Raises OSError if they cannot be watched."""

    def __init__(self, paths: Iterable[Path]) -> None:
        super().__init__()
        for path in paths:
            self.watch(path)

    def watch(self, path: Path) -> None:
        """Watch another path; a missing path is ignored."""
        with contextlib.suppress(OSError):
            self.add(path, MODIFY | MOVED_TO | CREATE | DELETE | _DELETE_SELF)

    def wait(self, timeout_s: float | None, also: int | None = None) -> bool:
        """Return True if something changed in time, or `also` is readable; resets all changes so far."""
        ready, _, _ = select.select([self.descriptor, *([] if also is None else [also])], [], [], timeout_s)
        # Callers look at the files themselves.
        for _ in self.events():
            pass
        return bool(ready)
