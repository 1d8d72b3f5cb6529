"""Record the mount points that runs had to make in a journal, and remove them when they are unused.

Removes only points that are provably ours: the same folder or file that the journal records by device and inode,
empty, owned by us, and not locked. A run holds the lock of each point that it uses while its tmux server lives. `enter`
imports this before every run: keep it light.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import stat
import struct
import sys
from collections.abc import Iterator

if sys.platform != "win32":
    import fcntl

Point = dict[str, "str | int"]


class Journal:
    """The points that runs of one state folder have made, one per line of the file at `path`."""

    def __init__(self, path: str) -> None:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)

    def close(self) -> None:
        os.close(self._file)

    def note(self, path: str, facts: os.stat_result) -> None:
        """Record, under the lock, that we have just made the point at `path`."""
        point: Point = {"path": path, "dev": facts.st_dev, "ino": facts.st_ino}
        # Keep a partial line of a crash separate.
        text = self._read()
        start = b"" if not text or text.endswith(b"\n") else b"\n"
        os.pwrite(self._file, start + json.dumps(point).encode() + b"\n", len(text))

    def points(self) -> list[Point]:
        """Return all points in order of creation."""
        points = []
        for line in self._read().splitlines():
            with contextlib.suppress(ValueError):
                point = json.loads(line)
                if isinstance(point, dict) and {"path", "dev", "ino"} <= set(point):
                    points.append(point)
        return points

    def keep(self, points: list[Point]) -> None:
        text = b"".join(json.dumps(point).encode() + b"\n" for point in points)
        os.pwrite(self._file, text, 0)
        os.ftruncate(self._file, len(text))

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the file, if the file system supports locks."""
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
    """Remove unused points in the journal at `path`, the deepest first; return the failures with reasons."""
    if not os.path.exists(path):
        return []
    kept: list[Point] = []
    stuck: list[str] = []
    with contextlib.closing(Journal(path)) as journal, journal.locked():
        for point in sorted(journal.points(), key=lambda one: str(one["path"]).count("/"), reverse=True):
            holds_one = any(str(one["path"]).startswith(f"{point['path']}/") for one in kept)
            why = "in use" if holds_one else _remove(point)
            if why == "in use":
                kept.insert(0, point)
            elif why:
                stuck.append(f"{point['path']}: {why}")
        journal.keep(kept)
    return stuck


def _remove(point: Point) -> str:
    """Remove one mount point; return the reason if it remains, empty if it is gone or not ours."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    parent, name = os.path.split(str(point["path"]))
    with contextlib.ExitStack() as opened:
        try:
            folder = os.open(parent, flags | os.O_DIRECTORY)
            opened.callback(os.close, folder)
            own = os.open(name, flags | os.O_NONBLOCK, dir_fd=folder)
            opened.callback(os.close, own)
        except OSError:
            return ""
        facts = os.fstat(own)
        if (facts.st_dev, facts.st_ino) != (point["dev"], point["ino"]) or facts.st_uid != os.geteuid():
            return ""
        try:
            fcntl.flock(own, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return "in use"
        except OSError as error:
            return f"a run may be using it ({error.strerror})"
        try:
            if stat.S_ISDIR(facts.st_mode):
                os.rmdir(name, dir_fd=folder)
            elif stat.S_ISREG(facts.st_mode) and facts.st_size == 0 and facts.st_nlink == 1:
                os.unlink(name, dir_fd=folder)
        except OSError as error:
            # It is not empty: somebody else uses it now.
            return "" if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT) else str(error.strerror)
    return ""


# System calls that Python lacks. Numbers from 424 on are the same on all architectures.

AT_FDCWD = -100
AT_SYMLINK_NOFOLLOW, AT_NO_AUTOMOUNT, AT_EMPTY_PATH, AT_RECURSIVE = 0x100, 0x800, 0x1000, 0x8000
MS_NOSUID, MS_NODEV, MS_BIND, MS_MOVE, MS_UNBINDABLE, MS_PRIVATE = 2, 4, 4096, 8192, 1 << 17, 1 << 18
MNT_DETACH = 2
_OPEN_TREE, _MOVE_MOUNT, _OPENAT2, _MOUNT_SETATTR = 428, 429, 437, 442
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "riscv64": 41, "ppc64le": 203, "s390x": 217, "armv7l": 218, "i686": 217}
_OPEN_TREE_CLONE, _FROM_EMPTY_PATH = 1, 4
_ATTR_RDONLY = 1
_NO_MAGICLINKS, _BENEATH = 2, 8

if sys.platform != "win32":
    _libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, path: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
    return result


def has_mount_calls() -> bool:
    """Return True if the kernel has all calls below (Linux 5.12), and no filter forbids the newest of them."""
    # Its size is wrong, which the kernel checks before all rights.
    return _libc.syscall(_MOUNT_SETATTR, -1, b"", 0, None, 0) < 0 and ctypes.get_errno() == errno.EINVAL


def open_tree(path: str, flags: int = AT_RECURSIVE, folder: int = AT_FDCWD) -> int:
    """Return a descriptor of a detached copy of the mounts at `path`."""
    words = ctypes.c_uint(flags | _OPEN_TREE_CLONE | os.O_CLOEXEC)
    return _checked(_libc.syscall(_OPEN_TREE, folder, os.fsencode(path), words), path)


def move_mount(tree: int, path: str, folder: int = AT_FDCWD) -> None:
    """Attach the result of `open_tree` at `path`."""
    _checked(_libc.syscall(_MOVE_MOUNT, tree, b"", folder, os.fsencode(path), _FROM_EMPTY_PATH), path)


def set_read_only(tree: int, *, is_recursive: bool) -> None:
    """Make a mount, or also all mounts below it, read-only."""
    # struct mount_attr: flags to set, flags to clear, propagation, user namespace.
    attributes = struct.pack("QQQQ", _ATTR_RDONLY, 0, 0, 0)
    flags = AT_EMPTY_PATH | (AT_RECURSIVE if is_recursive else 0)
    _checked(_libc.syscall(_MOUNT_SETATTR, tree, b"", flags, attributes, len(attributes)), "mount_setattr")


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """mount(2)."""
    words = (os.fsencode(text) if text else None for text in (source, target, kind))
    data = os.fsencode(options) if options else None
    _checked(_libc.mount(*words, ctypes.c_ulong(flags), data), target)


def unmount(path: str, flags: int) -> None:
    """umount2(2)."""
    _checked(_libc.umount2(os.fsencode(path), flags), path)


def pivot_root(path: str, old: str) -> None:
    """pivot_root(2). Raises OSError (ENOSYS) on an architecture whose syscall number is not known here."""
    number = _PIVOT_ROOT.get(os.uname().machine, -1)
    _checked(_libc.syscall(number, os.fsencode(path), os.fsencode(old)), path)


def is_automounter(path: str) -> bool:
    """Return True if an automounter is mounted at `path`."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
        return any(f" {path} " in line and " - autofs " in line for line in file)


@contextlib.contextmanager
def opened_beneath(folder: str, path: str) -> Iterator[int]:
    """Yield a descriptor (O_PATH) of `path` inside `folder`, whose links may not lead out of it.

    Makes missing folders, as the kubelet does for a subPath. Raises OSError.
    """
    with contextlib.ExitStack() as opened:
        top = found = os.open(folder, os.O_PATH | os.O_CLOEXEC)
        opened.callback(os.close, top)
        names = [name for name in path.split("/") if name]
        for number, name in enumerate(names):
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o755, dir_fd=found)
            found = _open_inside(top, "/".join(names[: number + 1]))
            opened.callback(os.close, found)
        yield found


def _open_inside(top: int, path: str) -> int:
    # struct open_how: flags, mode, and how to resolve the path.
    how = struct.pack("QQQ", os.O_PATH | os.O_CLOEXEC, 0, _BENEATH | _NO_MAGICLINKS)
    return _checked(_libc.syscall(_OPENAT2, top, os.fsencode(path), how, len(how)), path)
