"""Mount points that a run had to make are noted in a journal, and removed when nobody uses them any more.

What is removed is provably ours: the very folder, file or link that the journal names by device and inode, empty, owned
by us, and locked by nobody. A run holds the lock of each point that it uses for as long as its tmux server lives.
`enter` imports this before every run: it must stay light.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import sys
from collections.abc import Iterator

if sys.platform != "win32":
    import fcntl

Point = dict[str, "str | int"]


class Journal:
    """The points that runs of one state folder have made, one to a line of the file at `path`."""

    def __init__(self, path: str) -> None:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def note(self, path: str, facts: os.stat_result, to: str = "") -> None:
        """Write down, under the lock, that we have just made the point at `path`; `to` is where a link leads."""
        point: Point = {"path": path, "dev": facts.st_dev, "ino": facts.st_ino}
        if to:
            point["to"] = to
        # A half line of a crash stays a line of its own.
        text = self._read()
        start = b"" if not text or text.endswith(b"\n") else b"\n"
        os.pwrite(self._file, start + json.dumps(point).encode() + b"\n", len(text))

    def points(self) -> list[Point]:
        """Return all points, in the order in which they were made."""
        points = []
        for line in self._read().splitlines():
            with contextlib.suppress(ValueError):
                point = json.loads(line)
                if isinstance(point, dict) and {"path", "dev", "ino"} <= set(point):
                    points.append(point)
        return points

    def keep(self, points: list[Point]) -> None:
        """Keep only these mount points."""
        text = b"".join(json.dumps(point).encode() + b"\n" for point in points)
        os.pwrite(self._file, text, 0)
        os.ftruncate(self._file, len(text))

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the file, where the file system has locks."""
        with contextlib.suppress(OSError):
            fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                fcntl.flock(self._file, fcntl.LOCK_UN)

    def _read(self) -> bytes:
        return os.pread(self._file, os.fstat(self._file).st_size, 0)


def remove_points(path: str) -> list[str]:
    """Remove what the journal at `path` names and nobody uses, the deepest first; those that cannot be, and why."""
    if not os.path.exists(path):
        return []
    journal = Journal(path)
    try:
        with journal.locked():
            kept: list[Point] = []
            stuck: list[str] = []
            for point in sorted(journal.points(), key=lambda one: str(one["path"]).count("/"), reverse=True):
                holds_one = any(str(one["path"]).startswith(f"{point['path']}/") for one in kept)
                why = "holds another" if holds_one else _remove(point)
                if why in ("in use", "holds another"):
                    kept.insert(0, point)
                elif why:
                    stuck.append(f"{point['path']}: {why}")
            journal.keep(kept)
            return stuck
    finally:
        journal.close()


def _remove(point: Point) -> str:
    """Remove one mount point; return why it stays, empty if it is gone or not ours."""
    parent, name = os.path.split(str(point["path"]))
    try:
        folder = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        facts = os.lstat(name, dir_fd=folder)
        if (facts.st_dev, facts.st_ino) != (point["dev"], point["ino"]) or facts.st_uid != os.geteuid():
            return ""
        if stat.S_ISLNK(facts.st_mode):
            if os.readlink(name, dir_fd=folder) == point.get("to"):
                os.unlink(name, dir_fd=folder)
            return ""
        return _remove_locked(folder, name, facts)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return error.strerror or str(error)
    finally:
        os.close(folder)


def _remove_locked(folder: int, name: str, facts: os.stat_result) -> str:
    own = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        opened = os.fstat(own)
        if (opened.st_dev, opened.st_ino) != (facts.st_dev, facts.st_ino):
            return ""
        try:
            fcntl.flock(own, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return "in use"
        except OSError as error:
            return f"nobody can say whether a run uses it ({error.strerror})"
        if not stat.S_ISDIR(opened.st_mode):
            if stat.S_ISREG(opened.st_mode) and opened.st_size == 0 and opened.st_nlink == 1:
                os.unlink(name, dir_fd=folder)
            return ""
        try:
            os.rmdir(name, dir_fd=folder)
        except OSError as error:
            # Somebody has put something there: then it is theirs.
            return "" if error.errno in (errno.ENOTEMPTY, errno.EEXIST) else error.strerror or "cannot be removed"
        return ""
    finally:
        os.close(own)


def is_locked_point(own: int, facts: os.stat_result) -> bool:
    """Return True if what is open looks like the mount point of another run: empty, ours, and locked."""
    is_empty = facts.st_size == 0 if stat.S_ISREG(facts.st_mode) else _is_empty_folder(own, facts)
    if not is_empty or facts.st_uid != os.geteuid():
        return False
    try:
        fcntl.flock(own, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(own, fcntl.LOCK_UN)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _is_empty_folder(own: int, facts: os.stat_result) -> bool:
    return stat.S_ISDIR(facts.st_mode) and not os.listdir(own)
