"""A folder is emptied by its descriptor, whatever its depth and modes; links and mounts in it are not followed.

The folder itself, and whether it may be emptied at all, is the matter of `remover`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Container, Iterator
from itertools import count

__all__ = ["FOLDER", "empty", "mount_of", "remove_entry"]

# How a folder is opened: never by a link.
if sys.platform != "win32":
    FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
else:
    FOLDER = -1  # nothing is opened, and so nothing removed, where links could be followed


def mount_of(folder: int) -> int:
    """Return the mount that a descriptor is on; its device would not tell a bind mount of the same file system."""
    with open(f"/proc/self/fdinfo/{folder}", encoding="ascii") as file:
        for line in file:
            if line.startswith("mnt_id:"):
                return int(line.split()[1])
    raise OSError(errno.ENOSYS, "this kernel does not tell mounts apart")


def remove_entry(above: int, name: str, path: str) -> list[str]:
    """Remove a file, or a folder and everything in it; what stays, each with `path` before its name."""
    try:
        if _is_gone(above, name):
            return []
        with _unlocked(above, name, mount_of(above)) as folder:
            left = [f"{path}/{entry}" for entry in empty(folder)]
        if not left:
            os.rmdir(name, dir_fd=above)
        return left
    except OSError as error:
        return [f"{path}: {error.strerror}"]


def empty(folder: int, keep: Container[str] = ()) -> list[str]:
    """Remove everything in a folder but `keep`; what stays, in words.

    What stands in its subfolders is moved up into it first. So there is no recursion, however deep they are, and the
    kernel refuses to move what is a mount point.
    """
    mount, token, numbers = mount_of(folder), os.urandom(4).hex(), count()
    stuck: set[str] = set()
    left: list[str] = []
    origins: dict[str, str] = {}
    while names := [name for name in os.listdir(folder) if name not in keep and name not in stuck]:
        for name in names:
            origin = origins.pop(name, name)
            try:
                if _is_gone(folder, name):
                    continue
                with _unlocked(folder, name, mount) as subfolder:
                    for child in os.listdir(subfolder):
                        path = f"{origin}/{child}"
                        try:
                            if not _is_gone(subfolder, child):
                                lifted = f".{token}.{next(numbers)}"
                                _lift(subfolder, child, folder, lifted, mount)
                                origins[lifted] = path
                        except OSError as error:
                            stuck.add(name)
                            left.append(f"{path}: {error.strerror}")
                if name not in stuck:
                    os.rmdir(name, dir_fd=folder)
            except OSError as error:
                stuck.add(name)
                left.append(f"{origin}: {error.strerror}")
    return sorted(left)


def _is_gone(above: int, name: str) -> bool:
    """Remove a file or an empty folder; return False for a folder with entries."""
    try:
        os.unlink(name, dir_fd=above)
    except FileNotFoundError:
        return True
    except IsADirectoryError:
        try:
            os.rmdir(name, dir_fd=above)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                return False
            raise
    return True


def _lift(above: int, name: str, to: int, lifted: str, mount: int) -> None:
    """Move a folder, made writable first: its ``..`` changes."""
    try:
        os.rename(name, lifted, src_dir_fd=above, dst_dir_fd=to)
    except PermissionError:
        _unlock(above, name, mount)
        os.rename(name, lifted, src_dir_fd=above, dst_dir_fd=to)


@contextlib.contextmanager
def _unlocked(above: int, name: str, mount: int) -> Iterator[int]:
    try:
        folder = os.open(name, FOLDER, dir_fd=above)
    except PermissionError:
        _unlock(above, name, mount)
        folder = os.open(name, FOLDER, dir_fd=above)
    try:
        _check_mount(folder, mount)
        facts = os.fstat(folder)
        if facts.st_mode & 0o700 != 0o700 and facts.st_uid == os.geteuid():
            os.fchmod(folder, 0o700)
        yield folder
    finally:
        os.close(folder)


def _unlock(above: int, name: str, mount: int) -> None:
    """Give the owner access to a folder. The path by the descriptor follows no link that has replaced it."""
    folder = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
    try:
        _check_mount(folder, mount)
        os.chmod(f"/proc/self/fd/{folder}", 0o700)
    finally:
        os.close(folder)


def _check_mount(folder: int, mount: int) -> None:
    if mount_of(folder) != mount:
        raise OSError(errno.EBUSY, "something is mounted there")
