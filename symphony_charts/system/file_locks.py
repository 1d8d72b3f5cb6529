"""File locks: one process at a time uses a resource of this machine; the kernel releases the lock with its holder.

These are open file description locks (F_OFD_SETLK): a lock belongs to a descriptor with its copies, not to a process,
is visible from every namespace and mount, and any reader of the file can query it.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
import struct
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from symphony_charts.errors import Conflict, ToolFailed
from symphony_charts.system.files import closing, existing, file_system_of
from symphony_charts.system.user_folders import open_in_runtime_dir, runtime_dir, state_dir

if sys.platform != "win32":
    import fcntl

_EXPERIMENT_S = 5.0
# To choose ports or GPUs for a run; checking out the Git volumes of another run may take this long.
_CHOOSING_S = 600.0
# The errors of a file system without such locks.
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
# Options with which NFS and Lustre do not share locks between machines.
_LOCKS_OF_ONE_MACHINE = frozenset({"local_lock=all", "local_lock=posix", "localflock", "nolock"})


@contextlib.contextmanager
def experiment_lock(name: str, doing: str, timeout_s: float = _EXPERIMENT_S) -> Iterator[None]:
    """Hold the lock for starting, ending and removing runs of the experiment `name`, on all machines with these files.

    `doing` (``symph up``) is shown to other users. This thread's `with` holds the lock, not the programs started in it,
    and the lock is free as soon as this program ends in any way. If the file system of the state folder has no locks, a
    lock of this machine is used. Raises Conflict naming the holder if it is not free within `timeout_s`.
    """
    path = state_dir() / "locks" / name
    with contextlib.ExitStack() as opened:
        try:
            descriptor = _open_lock(path)
            opened.callback(os.close, descriptor)
            is_ours = _has_set_within(descriptor, timeout_s)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                what = f"cannot use the lock file {path.name}: {error.strerror}"
                step = "free disk space or allow writing there, or set SYMPH_STATE_DIR to another folder"
                raise ToolFailed(what, str(path), step) from error
            of_this_state = hashlib.sha256(os.fsencode(path.parent)).hexdigest()[:12]
            descriptor = open_in_runtime_dir(f"{of_this_state}.{name}.lock")
            opened.callback(os.close, descriptor)
            is_ours = _has_set_within(descriptor, timeout_s)
        if not is_ours:
            what = f'another command is changing experiment "{name}": {_holder(descriptor)}'
            raise Conflict(what, str(path), "wait until it ends, then try again")
        with contextlib.suppress(OSError):
            line = f"{doing} (pid {os.getpid()} on {os.uname().nodename}, since {time.strftime('%H:%M:%S')})\n"
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, line.encode(), 0)
        yield


def _open_lock(path: Path) -> int:
    """Return a descriptor of the file `path`, created if missing and never removed. Raises OSError.

    If it were removed, one process could lock the old file and another a new one.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Without O_NONBLOCK a pipe at this path would block forever.
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(path, flags, 0o600)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise PermissionError(errno.EPERM, "it is not a file")
    return descriptor


def _has_set_within(descriptor: int, timeout_s: float) -> bool:
    """Return True if the file could be locked in time. Raises OSError if it never can be."""
    deadline = time.monotonic() + timeout_s
    while not _has_set(descriptor, fcntl.F_WRLCK):
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.02)
    return True


def _holder(descriptor: int) -> str:
    with contextlib.suppress(OSError):
        line = os.pread(descriptor, 1000, 0).decode("utf-8", "replace").partition("\n")[0]
        # The holder may be writing the line right now.
        if line.isprintable() and line:
            return line
    return "another symph"


def hold_liveness_lock(path: Path) -> int | None:
    """Return a descriptor that holds the liveness lock `path` of a run until it and all its copies are closed.

    Any number of programs may hold it. None if the file system has no locks. Raises OSError if the file is not
    accessible.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        if _has_set(descriptor, fcntl.F_RDLCK):
            return descriptor
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            os.close(descriptor)
            raise
    os.close(descriptor)
    return None


def is_liveness_lock_held(path: Path) -> bool | None:
    """Return True if a program holds the liveness lock `path`, here or elsewhere; None if that is unknown."""
    try:
        with closing(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)) as descriptor:
            answer = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, _lock(fcntl.F_WRLCK))
    except FileNotFoundError:
        return False
    except OSError:
        return None
    kind: int = struct.unpack(_FLOCK, answer)[0]
    return kind != fcntl.F_UNLCK


def is_locked_across_machines() -> bool:
    """Return True if `experiment_lock` also excludes other machines that share this state folder."""
    folder = existing(state_dir())
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            _has_set(file.fileno(), fcntl.F_WRLCK)
        return not file_system_of(folder).options & _LOCKS_OF_ONE_MACHINE
    except OSError as error:
        # If the folder is not writable, locks do not matter.
        return error.errno not in _NO_LOCKS


# struct flock of fcntl(2): type, whence, start, length, pid.
_FLOCK = "hhqqi0q"


def _lock(kind: int) -> bytes:
    return struct.pack(_FLOCK, kind, os.SEEK_SET, 0, 0, 0)


def _has_set(descriptor: int, kind: int) -> bool:
    """Return True if the whole file could be locked now. Raises OSError if it never can be."""
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _lock(kind))
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            raise
        return False
    return True


@contextlib.contextmanager
def exclusive(name: str, timeout_s: float = _CHOOSING_S) -> Iterator[None]:
    """Hold a lock of this machine, the file ``NAME.lock`` of the runtime folder. Raises ToolFailed on timeout."""
    with closing(open_in_runtime_dir(f"{name}.lock")) as descriptor:
        if not _has_set_within(descriptor, timeout_s):
            what = f"another process has held the lock for {timeout_s:g} s"
            raise ToolFailed(what, str(runtime_dir() / f"{name}.lock"))
        yield
