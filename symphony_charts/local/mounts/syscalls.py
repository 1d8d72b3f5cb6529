"""System calls for mounts, and opening of paths that may not lead out of a folder.

`enter` imports this before every run and sometimes before a process: it must stay light. Numbers from 424 on are the
same on all machines.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import platform
import stat
import sys

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
    # What follows the type differs between machines; nothing of it is read.
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
    """Attach what `open_tree` gave at `path`. Linux 5.2."""
    _checked(_libc.syscall(_MOVE_MOUNT, tree, b"", folder, os.fsencode(path), _FROM_EMPTY_PATH), path)


def set_read_only(tree: int, *, is_recursive: bool) -> None:
    """Make a mount, or also all mounts below it, read-only. Linux 5.12."""
    attributes = _MountAttr(_ATTR_RDONLY, 0, 0, 0)
    flags = AT_EMPTY_PATH | (AT_RECURSIVE if is_recursive else 0)
    size = ctypes.sizeof(attributes)
    _checked(_libc.syscall(_MOUNT_SETATTR, tree, b"", flags, ctypes.byref(attributes), size), "mount_setattr")


def open_beneath_once(folder: int, path: str) -> int:
    """Return a descriptor (O_PATH) of what stands at `path`, whose links may not lead out of `folder`. Linux 5.6."""
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
    """pivot_root(2). Raises OSError (ENOSYS) on a machine whose number of it is not known here."""
    _checked(_libc.syscall(_PIVOT_ROOT.get(platform.machine(), -1), os.fsencode(path), os.fsencode(old)), path)


def file_system_of(path: str) -> int:
    """Return the number of the file system's type at `path`, as statfs(2) lists them."""
    found = _Statfs()
    _checked(_libc.statfs(os.fsencode(path), ctypes.byref(found)), path)
    return int(found.f_type)


# `enter` imports this before every run and sometimes before a process: it must stay light.


def open_beneath(folder: str, path: str, *, make: bool = True) -> int:
    """Return a descriptor (O_PATH) of `path` inside `folder`, whose links may not lead out of it.

    With `make` folders that are missing are made, as the kubelet makes those of a subPath. Raises OSError.
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
    # Linux before 5.6: then no link at all.
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
