"""The user's folders for state and running programs, and the systems that can run experiments.

The runtime folder may be in a place where others could have created it first (``/tmp``). So callers use
`make_runtime_dir` or `check_private`, or open its files by `open_in_runtime_dir`: links are not followed, and nothing
is written or truncated before it is known to be ours.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import tempfile
from pathlib import Path

from symphony_charts.errors import ToolFailed, ToolMissing

# Windows has neither, and no user ids.
_NOT_BY_LINKS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


def state_dir() -> Path:
    """Return the folder of lasting data: $SYMPH_STATE_DIR, else ``symph`` in XDG's state folder; may be absent.

    The path is absolute and without links, since it identifies runs. Raises ToolFailed without a home.
    """
    if chosen := os.environ.get("SYMPH_STATE_DIR"):
        return Path(os.path.realpath(chosen))
    base = Path(os.environ.get("XDG_STATE_HOME", ""))
    try:
        # The XDG specification requires relative paths to be ignored.
        state = (base if base.is_absolute() else Path("~/.local/state").expanduser()) / "symph"
    except RuntimeError as error:
        step = "set HOME, or SYMPH_STATE_DIR to a folder for state"
        raise ToolFailed("this user has no home folder", next=step) from error
    return Path(os.path.realpath(state))


def runtime_dir() -> Path:
    """Return the folder of sockets and running state: $SYMPH_RUNTIME_DIR, else XDG's, else a per-user temporary folder.

    May be missing, and may belong to another user (`check_private`).
    """
    chosen = os.environ.get("SYMPH_RUNTIME_DIR")
    if chosen:
        return Path(chosen).absolute()
    base = Path(os.environ.get("XDG_RUNTIME_DIR", ""))
    if base.is_absolute() and os.access(base, os.W_OK):
        return base / "symph"
    return Path(tempfile.gettempdir()) / f"symph-{getattr(os, 'getuid', int)()}"


def make_runtime_dir() -> Path:
    """Return the runtime folder, created for its owner alone if missing. Raises ToolFailed if others can access it."""
    path = runtime_dir()
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise _unsafe(path, error.strerror or "") from error
    check_private(path)
    return path


def check_private(folder: Path) -> None:
    """Raise ToolFailed if a folder is a link, belongs to another user, or others may enter it."""
    if folder.is_symlink() or folder.exists():
        os.close(_own_folder(folder))


def open_in_runtime_dir(name: str) -> int:
    """Return a descriptor of a regular file of ours with one name, in the runtime folder; both are made if missing.

    Does not block on a pipe. Raises ToolFailed for anything other than such a file.
    """
    path = make_runtime_dir() / name
    folder = _own_folder(path.parent)
    try:
        descriptor = os.open(name, os.O_RDWR | os.O_CREAT | _NOT_BY_LINKS | os.O_NONBLOCK, 0o600, dir_fd=folder)
    except OSError as error:
        raise _unsafe(path, "it is a link" if error.errno == errno.ELOOP else error.strerror or "") from error
    finally:
        os.close(folder)
    facts = os.fstat(descriptor)
    if not stat.S_ISREG(facts.st_mode) or facts.st_uid != os.geteuid() or facts.st_nlink != 1:
        os.close(descriptor)
        raise _unsafe(path, "it is not a plain file, or not only yours")
    return descriptor


def _own_folder(path: Path) -> int:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | _NOT_BY_LINKS)
    except OSError as error:
        is_other = error.errno in (errno.ELOOP, errno.ENOTDIR)
        raise _unsafe(path, "it is a link or not a folder" if is_other else error.strerror or "") from error
    facts = os.fstat(descriptor)
    mode = stat.S_IMODE(facts.st_mode)
    if facts.st_uid != os.geteuid() or mode & 0o077:
        os.close(descriptor)
        who = "you" if facts.st_uid == os.geteuid() else f"user {facts.st_uid}"
        raise _unsafe(path, f"it belongs to {who} with mode {mode:04o}; it must be yours with mode 0700")
    return descriptor


def _unsafe(path: Path, why: str) -> ToolFailed:
    step = "check its owner and remove it, or set SYMPH_RUNTIME_DIR to a folder of yours with mode 0700"
    return ToolFailed(f"cannot use {path.name} for running experiments: {why}", str(path), step)


HAS_FILE_LOCKS = sys.platform != "win32"
_NAMES = {"darwin": "macOS", "win32": "Windows", "linux": "Linux"}
_WAY_OUT = {
    "darwin": "in a Linux machine (Lima, Docker, OrbStack)",
    "win32": "in WSL 2",
}


def system_name() -> str:
    return _NAMES.get(sys.platform, sys.platform)


def runs_experiments() -> bool:
    """Return True if experiments can run on this system: their supervisor needs /proc, pidfds and inotify."""
    return str(sys.platform) == "linux"


def refuse_elsewhere() -> None:
    """Raise ToolMissing if experiments cannot run on this machine."""
    if not runs_experiments():
        raise elsewhere()


def elsewhere() -> ToolMissing:
    """Return the error for a function that needs Linux."""
    what = f"experiments run on a local machine only under Linux, and this is {system_name()}"
    here = _WAY_OUT.get(sys.platform, "on a Linux machine")
    step = f"run on a cluster: --on kube, or run symph {here}; packaging, plans and publishing also work on this system"
    return ToolMissing(what, "", step)


def is_lack_of_linux(error: BaseException) -> bool:
    """Return True if an unexpected error only shows that Python lacks parts of its library on this system."""
    if runs_experiments():
        return False
    if isinstance(error, ModuleNotFoundError):
        return error.name in ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty")
    return isinstance(error, AttributeError) and str(error).startswith(("module 'os' ", "module 'signal' "))
