"""Watch files for changes through inotify: in some folders, or in whole trees. Linux only.

Editors save in place, or write a new file and rename it. Both cause an event of the folder, so this watches folders,
never files. Source: inotify(7).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import select
import struct
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from symphony_charts.errors import ToolFailed

if TYPE_CHECKING:
    from typing_extensions import Self

MODIFY, MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x2, 0x40, 0x80, 0x100, 0x200
OVERFLOW = 0x4000
"""The kernel's queue was full: events are lost."""
_CLOSE_WRITE, _DELETE_SELF, _IGNORED = 0x8, 0x400, 0x8000
_IS_DIR, _ONLY_DIR, _NOT_UNLINKED = 0x40000000, 0x1000000, 0x4000000
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

    def remove(self, watch: int) -> None:
        _LIBC.inotify_rm_watch(self.descriptor, watch)

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


_TREE_EVENTS = _CLOSE_WRITE | MOVED_FROM | MOVED_TO | CREATE | DELETE | _ONLY_DIR | _NOT_UNLINKED


class Tree(Inotify):
    """The files `roots`, and all files below the folders among them. `descriptor` is readable when some have changed.

    Skips paths for which `is_ignored` is true, folders with everything below them. Also watches the folders above the
    roots: a root may be replaced by a rename, or removed and recreated. Raises ToolFailed when the kernel refuses.
    """

    def __init__(self, roots: Iterable[Path], is_ignored: Callable[[Path], bool]) -> None:
        self.roots, self._is_ignored = tuple(roots), is_ignored
        try:
            super().__init__()
        except OSError as error:
            raise _refused(error, "a watch") from error
        self._folders: dict[int, Path] = {}
        try:
            self._add_roots()
        except BaseException:
            self.close()
            raise

    def changed(self) -> set[Path]:
        """Return the files that have changed since the last call, removed ones included."""
        changed: set[Path] = set()
        for watch, mask, name in self.events():
            if mask & OVERFLOW:
                # The kernel has dropped events: everything may have changed.
                self._add_roots()
                changed.update(self.roots)
            elif mask & _IGNORED:
                self._folders.pop(watch, None)
            elif watch in self._folders:
                changed.update(self._look_at(self._folders[watch] / name, mask))
        return changed

    def _look_at(self, path: Path, mask: int) -> Iterator[Path]:
        is_root = path in self.roots
        if not (is_root or any(root in path.parents for root in self.roots)) or self._leaves_out(path):
            return
        if mask & _IS_DIR:
            if mask & (CREATE | MOVED_TO):
                # Files may have been created before the folder was watched.
                yield from self._add_folder(path)
            elif mask & MOVED_FROM:
                self._forget(path)
        elif not mask & CREATE or _is_whole(path):
            yield path

    def _add_roots(self) -> None:
        for root in self.roots:
            self._watch(root.parent)
            if root.is_dir():
                for _ in self._add_folder(root):
                    pass

    def _add_folder(self, folder: Path) -> Iterator[Path]:
        if not self._watch(folder):
            return
        with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
            for entry in entries:
                path = Path(entry.path)
                if self._leaves_out(path):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    yield from self._add_folder(path)
                else:
                    yield path

    def _watch(self, folder: Path) -> bool:
        try:
            self._folders[self.add(folder, _TREE_EVENTS)] = folder
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR):
                return False
            raise _refused(error, str(folder)) from error
        return True

    def _forget(self, folder: Path) -> None:
        """Remove the watches of a folder that was moved away: their paths are no longer valid."""
        for watch in [watch for watch, path in self._folders.items() if path == folder or folder in path.parents]:
            self.remove(watch)
            del self._folders[watch]

    def _leaves_out(self, path: Path) -> bool:
        return path not in self.roots and self._is_ignored(path)


def _is_whole(path: Path) -> bool:
    """Return True if a file is complete when it is created, like a link; others are written and closed afterwards."""
    try:
        return path.is_symlink() or path.stat().st_nlink > 1
    except OSError:
        return False


def _refused(error: OSError, what: str) -> ToolFailed:
    step = (
        "raise the limit: sysctl fs.inotify.max_user_watches=1048576"
        if error.errno == errno.ENOSPC
        else "watch fewer folders"
    )
    return ToolFailed(f"cannot watch {what}: {error.strerror}", next=step)
