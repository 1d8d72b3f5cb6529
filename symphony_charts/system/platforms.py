"""Experiments run on Linux alone; macOS and Windows make, check and publish them, and watch those on clusters."""

from __future__ import annotations

import sys

from symphony_charts.errors import ToolMissing

__all__ = ["HAS_FILE_LOCKS", "elsewhere", "is_lack_of_linux", "refuse_elsewhere", "runs_experiments", "system_name"]

HAS_FILE_LOCKS = sys.platform != "win32"
_NAMES = {"darwin": "macOS", "win32": "Windows", "linux": "Linux"}
_WAY_OUT = {
    "darwin": "in a Linux machine (Lima, Docker, OrbStack)",
    "win32": "in WSL 2",
}


def system_name() -> str:
    """Return the common name of this system."""
    return _NAMES.get(sys.platform, sys.platform)


def runs_experiments() -> bool:
    """Return True if experiments can run on this system: their supervisor needs /proc, pidfds and inotify."""
    return str(sys.platform) == "linux"


def refuse_elsewhere() -> None:
    """Raise ToolMissing where experiments cannot run on this machine."""
    if not runs_experiments():
        raise elsewhere()


def elsewhere() -> ToolMissing:
    """Return the refusal of what needs Linux."""
    what = f"experiments run on this machine under Linux alone, and this is {system_name()}"
    here = _WAY_OUT.get(sys.platform, "on a Linux machine")
    step = f"--on kube means a cluster; or run symph {here}; packaging, plans and publishing work as they are"
    return ToolMissing(what, "", step)


def is_lack_of_linux(error: BaseException) -> bool:
    """Return True if an unexpected error only says that Python has less of its library on this system."""
    if runs_experiments():
        return False
    if isinstance(error, ModuleNotFoundError):
        return error.name in ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty")
    return isinstance(error, AttributeError) and str(error).startswith(("module 'os' ", "module 'signal' "))
