"""Record the mount points that runs had to make in a journal, and remove them when they are unused.

Removes only points that are provably ours: the same folder, file or link that the journal records by device and inode,
empty, owned by us, and not locked. A run holds the lock of each point that it uses while its tmux server lives. `enter`
imports this before every run: keep it light.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import platform
import stat
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

    def note(self, path: str, facts: os.stat_result, to: str = "") -> None:
        """Record, under the lock, that we have just made the point at `path`; `to` is the target of a link."""
        point: Point = {"path": path, "dev": facts.st_dev, "ino": facts.st_ino}
        if to:
            point["to"] = to
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
    """Remove one mount point; return the reason if it remains, empty if it is gone or not ours."""
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
            return f"it is unknown whether a run uses it ({error.strerror})"
        if not stat.S_ISDIR(opened.st_mode):
            if stat.S_ISREG(opened.st_mode) and opened.st_size == 0 and opened.st_nlink == 1:
                os.unlink(name, dir_fd=folder)
            return ""
        try:
            os.rmdir(name, dir_fd=folder)
        except OSError as error:
            # It is not empty: somebody else uses it now.
            return "" if error.errno in (errno.ENOTEMPTY, errno.EEXIST) else error.strerror or "cannot be removed"
        return ""
    finally:
        os.close(own)


def is_locked_point(own: int, facts: os.stat_result) -> bool:
    """Return True if the open file or folder looks like a mount point of another run: empty, ours, and locked."""
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


# `enter` imports this before every run and sometimes before a process: keep it light. Numbers from 424 on are the same
# on all architectures.

AT_FDCWD = -100
AT_SYMLINK_NOFOLLOW, AT_NO_AUTOMOUNT, AT_EMPTY_PATH, AT_RECURSIVE = 0x100, 0x800, 0x1000, 0x8000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT, MS_BIND, MS_MOVE, MS_REC = 1, 2, 4, 32, 4096, 8192, 16384
MS_UNBINDABLE, MS_PRIVATE = 1 << 17, 1 << 18
MNT_DETACH = 2
_OPEN_TREE, _MOVE_MOUNT, _OPENAT2, _MOUNT_SETATTR = 428, 429, 437, 442
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "riscv64": 41, "ppc64le": 203, "s390x": 217, "armv7l": 218, "i686": 217}
_OPEN_TREE_CLONE, _FROM_EMPTY_PATH = 1, 4
_ATTR_RDONLY = 1
_NO_MAGICLINKS, _BENEATH = 2, 8

if sys.platform != "win32":
    _libc = ctypes.CDLL(None, use_errno=True)


class _MountAttr(ctypes.Structure):
    _fields_ = [
        ("attr_set", ctypes.c_uint64),
        ("attr_clr", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns_fd", ctypes.c_uint64),
    ]


class _OpenHow(ctypes.Structure):
    _fields_ = [("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64)]


class _Statfs(ctypes.Structure):
    # The fields after the type differ between architectures and are not read.
    _fields_ = [("f_type", ctypes.c_long), ("rest", ctypes.c_byte * 512)]


def _checked(result: int, path: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
    return result


def open_tree(path: str, flags: int = AT_RECURSIVE, folder: int = AT_FDCWD) -> int:
    """Return a descriptor of a detached copy of the mounts at `path`. Linux 5.2."""
    words = ctypes.c_uint(flags | _OPEN_TREE_CLONE | os.O_CLOEXEC)
    return _checked(_libc.syscall(_OPEN_TREE, folder, os.fsencode(path), words), path)


def move_mount(tree: int, path: str, folder: int = AT_FDCWD) -> None:
    """Attach the result of `open_tree` at `path`. Linux 5.2."""
    _checked(_libc.syscall(_MOVE_MOUNT, tree, b"", folder, os.fsencode(path), _FROM_EMPTY_PATH), path)


def set_read_only(tree: int, *, is_recursive: bool) -> None:
    """Make a mount, or also all mounts below it, read-only. Linux 5.12."""
    attributes = _MountAttr(_ATTR_RDONLY, 0, 0, 0)
    flags = AT_EMPTY_PATH | (AT_RECURSIVE if is_recursive else 0)
    size = ctypes.sizeof(attributes)
    _checked(_libc.syscall(_MOUNT_SETATTR, tree, b"", flags, ctypes.byref(attributes), size), "mount_setattr")


def open_beneath_once(folder: int, path: str) -> int:
    """Return a descriptor (O_PATH) of `path`, whose links may not lead out of `folder`. Linux 5.6."""
    how = _OpenHow(os.O_PATH | os.O_CLOEXEC, 0, _BENEATH | _NO_MAGICLINKS)
    size = ctypes.sizeof(how)
    return _checked(_libc.syscall(_OPENAT2, folder, os.fsencode(path), ctypes.byref(how), size), path)


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
    _checked(_libc.syscall(_PIVOT_ROOT.get(platform.machine(), -1), os.fsencode(path), os.fsencode(old)), path)


def file_system_of(path: str) -> int:
    """Return the number of the file system's type at `path`, as statfs(2) lists them."""
    found = _Statfs()
    _checked(_libc.statfs(os.fsencode(path), ctypes.byref(found)), path)
    return int(found.f_type)


# `enter` imports this before every run and sometimes before a process: keep it light.


def open_beneath(folder: str, path: str, *, make: bool = True) -> int:
    """Return a descriptor (O_PATH) of `path` inside `folder`, whose links may not lead out of it.

    With `make` missing folders are made, as the kubelet makes them for a subPath. Raises OSError.
    """
    top = os.open(folder, os.O_PATH | os.O_CLOEXEC)
    if not path:
        return top
    try:
        with contextlib.suppress(FileNotFoundError):
            return _open_inside(top, path)
        if not make:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        done = ""
        for name in path.split("/"):
            inner = _open_inside(top, done) if done else os.dup(top)
            try:
                os.mkdir(name, 0o755, dir_fd=inner)
            except FileExistsError:
                pass
            finally:
                os.close(inner)
            done = f"{done}/{name}".lstrip("/")
        return _open_inside(top, path)
    finally:
        os.close(top)


def _open_inside(top: int, path: str) -> int:
    try:
        return open_beneath_once(top, path)
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
    # Linux before 5.6: allow no links.
    inner = os.dup(top)
    for name in path.split("/"):
        try:
            deeper = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=inner)
        finally:
            os.close(inner)
        inner = deeper
    if stat.S_ISLNK(os.fstat(inner).st_mode):
        os.close(inner)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
    return inner


def remount_read_only(path: str) -> None:
    """Make the mount at `path` and all mounts below read-only; they keep their other flags."""
    words = {"nosuid": 2, "nodev": 4, "noexec": 8, "noatime": 1024, "nodiratime": 2048, "relatime": 1 << 21}
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        rows = [line.split(" ") for line in file]
    for row in rows:
        at = _unescaped(row[4])
        if at == path or at.startswith(f"{path}/"):
            flags = MS_BIND | MS_REMOUNT | MS_RDONLY
            mount("", at, flags=flags | sum(words.get(word, 0) for word in row[5].split(",")))


def _unescaped(text: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text
