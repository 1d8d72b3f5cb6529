"""What is shown to processes is opened without leaving its volume, and made read-only with all that is mounted below.

`enter` imports this before every run and sometimes before a process: it must stay light.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat

from symphony_charts.local.mounts import syscalls

__all__ = ["open_beneath", "remount_read_only"]


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
        return syscalls.open_beneath_once(top, path)
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
            flags = syscalls.MS_BIND | syscalls.MS_REMOUNT | syscalls.MS_RDONLY
            syscalls.mount("", at, flags=flags | sum(words.get(word, 0) for word in row[5].split(",")))


def _unescaped(text: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text
