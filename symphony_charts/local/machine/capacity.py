"""Whether this machine has room for a run: open files and terminals, looked at before anything starts."""

from __future__ import annotations

import sys
from pathlib import Path

from symphony_charts.errors import ToolFailed

__all__ = ["check_capacity", "free_terminals"]

if sys.platform != "win32":
    import resource

# What stays open in a tmux server besides one terminal and one log pipe per pane.
_SPARE_FDS = 64
# Terminals left to everybody else.
_SPARE_TERMINALS = 16
_PTY = Path("/proc/sys/kernel/pty")


def check_capacity(count: int) -> None:
    """Raise the limits of a tmux server so that `count` processes get a terminal and a log pipe each.

    A server that runs out of open files spins and answers nobody, so there is no trying. Raises ToolFailed when they
    cannot all be had; nothing has been changed then.
    """
    free = free_terminals()
    if count + _SPARE_TERMINALS > free:
        what = f"{count} processes need as many terminals, {free} are free on this machine"
        raise ToolFailed(what, str(_PTY / "max"), f"raise it: sysctl -w kernel.pty.max={2 * count + 4096}")
    needed = 2 * count + _SPARE_FDS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        what = f"{count} processes need {needed} open files, {hard} are allowed"
        raise ToolFailed(what, "ulimit -Hn", f"ulimit -n {needed} as root, or a line in /etc/security/limits.conf")
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def free_terminals() -> int:
    """Return the number of more terminals this machine can open."""
    most, used = (int((_PTY / name).read_text(encoding="ascii")) for name in ("max", "nr"))
    return most - used
