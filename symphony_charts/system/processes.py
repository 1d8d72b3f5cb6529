"""Processes of this machine are found by the run that they belong to, and ended for certain. Linux only (/proc)."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable, Sequence
from pathlib import Path

__all__ = ["inside", "is_alive", "members", "parent_and_session", "signal_process"]

_PROC = Path("/proc")


def is_alive(pid: int) -> bool:
    """Whether `pid` is a process that runs; a zombie does not."""
    return pid > 0 and parent_and_session(pid) is not None


def parent_and_session(pid: int) -> tuple[int, int] | None:
    """Parent and session of `pid`, or None when it is gone or a zombie."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name in parentheses may hold anything, spaces and parentheses included.
    state, parent, _, session = text.rpartition(")")[2].split()[:4]
    return None if state in "ZX" else (int(parent), int(session))


def _mount_namespace(pid: int) -> int:
    """The number of the mount namespace of `pid`, 0 when it cannot be read."""
    try:
        return (_PROC / str(pid) / "ns" / "mnt").stat().st_ino
    except OSError:
        return 0


def inside(pid: int, command: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """The argument list and environment that run `command` where `pid` runs: its mounts, its folder, its variables.

    Raises OSError when it is gone or not ours.
    """
    environ = (_PROC / str(pid) / "environ").read_bytes().decode("utf-8", "surrogateescape")
    env = dict(entry.split("=", 1) for entry in environ.split("\0") if "=" in entry)
    if _mount_namespace(pid) in (0, _mount_namespace(os.getpid())):
        return ["env", "-C", f"/proc/{pid}/cwd", "--", *command], env
    enter = ["nsenter", f"--mount=/proc/{pid}/ns/mnt", f"--wd=/proc/{pid}/cwd"]
    owner = _PROC / str(pid) / "ns" / "user"
    if owner.stat().st_ino != (_PROC / "self" / "ns" / "user").stat().st_ino:
        # An ordinary user owns the mounts by a user namespace, which has to be entered with them.
        enter[1:1] = [f"--user={owner}", "--preserve-credentials"]
    return [*enter, "--", *command], env


def members(mount: str, sessions: set[int], cookie: bytes) -> list[int]:
    """All processes that see `mount` among their mounts, are in one of `sessions`, or began with `cookie`.

    What one of them has started belongs to them, too, as long as the kernel knows it for its child. `mount` is a mount
    point that exists in the namespaces of one run alone (empty: none); `cookie` is ``NAME=value``. The caller and its
    own namespace never count. Numbers of namespaces are used again by the kernel, so they prove nothing by themselves.
    """
    mine = os.getpid()
    seen: dict[int, bool] = {_mount_namespace(mine): False, 0: False}
    pids, parents = set(), dict[int, int]()
    for entry in os.scandir(_PROC):
        if not entry.name.isdigit() or int(entry.name) == mine:
            continue
        pid = int(entry.name)
        facts = parent_and_session(pid)
        if facts is None:
            continue
        parents[pid] = facts[0]
        if facts[1] in sessions or _sees(pid, mount, seen) or _has_cookie(pid, cookie):
            pids.add(pid)
    while more := {pid for pid, parent in parents.items() if parent in pids} - pids:
        pids |= more
    return sorted(pids)


def _sees(pid: int, mount: str, seen: dict[int, bool]) -> bool:
    """Whether `mount` is a mount point in the namespace of `pid`; `seen` remembers the answer of each namespace."""
    number = _mount_namespace(pid)
    if number not in seen:
        try:
            text = (_PROC / str(pid) / "mountinfo").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return False
        # proc_pid_mountinfo(5): blanks and the like stand there as octal numbers.
        listed = "".join(f"\\{ord(char):03o}" if char in " \t\n\\" else char for char in mount)
        seen[number] = bool(mount) and any(line.split(" ")[4] == listed for line in text.splitlines())
    return seen[number]


def _has_cookie(pid: int, cookie: bytes) -> bool:
    try:
        return cookie in (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return False


def signal_process(pids: Iterable[int], number: signal.Signals) -> None:
    """Send a signal to each process that is still there; 0 and below, which would mean whole groups, are left out."""
    for pid in pids:
        if pid <= 0:
            continue
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
