"""Run command lines with Python's library as it is on macOS or Windows: without the functions missing there.

    python -m tests.cli.other_system darwin "package e.yaml" "up e.yaml"

Print a line of JSON for each: status, stdout, stderr. Differences in paths, encodings and programs are not simulated.
"""

from __future__ import annotations

# The library and third-party packages choose by the system when they are imported: they keep the choices of this one.
import asyncio
import contextlib
import ctypes
import importlib.abc
import io
import json
import multiprocessing
import os
import shlex
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import cookiecutter.main
import urllib3.util.ssl_

_IMPORTED = (asyncio, multiprocessing, cookiecutter.main, urllib3.util.ssl_)
_MODULES = ("fcntl", "pwd", "grp", "termios", "tty", "pty", "resource", "curses", "readline", "syslog")
_OS = {
    "darwin": ("pidfd_open", "O_PATH", "memfd_create", "sched_getaffinity", "posix_fallocate"),
    "win32": (
        *(
            "uname",
            "getuid",
            "geteuid",
            "getgid",
            "getegid",
            "killpg",
            "setsid",
            "getpgid",
            "getpgrp",
            "fork",
            "mkfifo",
        ),
        *("sysconf", "getloadavg", "statvfs", "chown", "fchmod", "ttyname", "pidfd_open", "sched_getaffinity"),
        *("O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC", "O_NONBLOCK", "O_PATH"),
    ),
}
_SIGNALS = ("SIGKILL", "SIGHUP", "SIGWINCH", "SIGUSR1", "SIGCHLD", "SIGTSTP", "SIGCONT", "SIGQUIT", "SIGPIPE")
_LINUX = ("inotify", "unshare", "mount", "setns", "open_tree", "move_mount", "syscall", "prctl", "fallocate")


class Absent(importlib.abc.MetaPathFinder):
    """Refuses to import modules that the system lacks."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in _MODULES:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return None


class Library:
    """The C library without the calls of Linux; on Windows, the name is required."""

    def __init__(self, name: str | None, **options: Any) -> None:
        if sys.platform == "win32" and name is None:  # type: ignore[unreachable, unused-ignore]  # it was set below
            raise TypeError("bad argument type for built-in operation")
        self._library = _CDLL(name, **options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith(_LINUX):
            raise AttributeError(name)
        return getattr(self._library, name)


_CDLL = ctypes.CDLL


def become(system: str) -> None:
    """Remove everything that `system` lacks, for all later imports."""
    sysconfig.get_config_vars()
    if system == "win32":
        sys.meta_path.insert(0, Absent())
        for name in _MODULES:
            sys.modules.pop(name, None)
        # Windows ends a process by a call of its own. POSIX needs SIGKILL, which is absent below.
        subprocess.Popen.kill = subprocess.Popen.terminate  # type: ignore[method-assign]
    absent: list[tuple[ModuleType, str]] = [(os, name) for name in _OS[system]]
    absent += [(signal, name) for name in ("pidfd_send_signal", *(_SIGNALS if system == "win32" else ()))]
    for module, name in absent:
        if hasattr(module, name):
            delattr(module, name)
    ctypes.CDLL = Library  # type: ignore[misc, assignment]  # for this program alone
    sys.platform = system


def main() -> None:
    become(sys.argv[1])
    from symphony_charts.cli.main import main as symph

    for words in sys.argv[2:]:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = symph(shlex.split(words))
        sys.stdout.write(json.dumps({"status": status, "out": out.getvalue(), "err": err.getvalue()}) + "\n")


if __name__ == "__main__":
    main()
