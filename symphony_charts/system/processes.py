"""Processes of this machine are found by the run that they belong to, and ended for certain. Linux only (/proc)."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from symphony_charts.system.process_identity import PROC, TICKS_PER_S, ProcessRecord, Stat, read_stat, send_signal

__all__ = ["Session", "Used", "inside", "members", "signal_all", "used_by"]

# A process becomes another program within microseconds, and on a busy machine has to wait for its turn, in seconds.
_EXEC_S = 0.1
_LOOKS = 3
if sys.platform != "win32":
    _PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The POSIX session of `leader`, which was last seen running at tick `until` (of `process_identity.ticks_now`).

    The kernel reuses a session's number once its leader and all members have ended. A process with this number that
    started while the leader ran is a member. One that started later may be a member of another.
    """

    leader: ProcessRecord
    until: int

    def span(self) -> tuple[int, float]:
        """From when to when whatever has the session's number is in it."""
        stat = read_stat(self.leader.pid)
        # A zombie still has its number.
        is_there = stat is not None and stat.start == self.leader.start
        return self.leader.start, float("inf") if is_there else self.until


def _mount_namespace(pid: int) -> int:
    try:
        return (PROC / str(pid) / "ns" / "mnt").stat().st_ino
    except OSError:
        return 0


def inside(pid: int, command: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return argument list and environment that run `command` with the mounts, folder and variables of `pid`.

    Raises OSError when it is gone or not ours.
    """
    environ = _environ(pid).decode("utf-8", "surrogateescape")
    env = dict(entry.split("=", 1) for entry in environ.split("\0") if "=" in entry)
    if _mount_namespace(pid) in (0, _mount_namespace(os.getpid())):
        return ["env", "-C", f"/proc/{pid}/cwd", "--", *command], env
    enter = ["nsenter", f"--mount=/proc/{pid}/ns/mnt", f"--wd=/proc/{pid}/cwd"]
    owner = PROC / str(pid) / "ns" / "user"
    if owner.stat().st_ino != (PROC / "self" / "ns" / "user").stat().st_ino:
        # An ordinary user owns the mounts by a user namespace, which has to be entered with them.
        enter[1:1] = [f"--user={owner}", "--preserve-credentials"]
    return [*enter, "--", *command], env


def members(mount: str, sessions: Iterable[Session], cookie: bytes) -> list[ProcessRecord]:
    """Return all processes that see `mount` among their mounts, are in one of `sessions`, or began with `cookie`.

    What one of them has started belongs to them, too, as long as the kernel knows it for its child. `mount` is a mount
    point that exists in the namespaces of one run alone (empty: none); `cookie` is ``NAME=value``. The caller and its
    own namespace never count. Numbers of namespaces are used again by the kernel, so they prove nothing by themselves.
    """
    seen: dict[int, bool] = {_mount_namespace(os.getpid()): False, 0: False}
    spans: dict[int, list[tuple[int, float]]] = {}
    # A leader is of its session before it has opened it, as the child of tmux that becomes a pane.
    leaders = set()
    for session in sessions:
        leaders.add((session.leader.pid, session.leader.start))
        spans.setdefault(session.leader.pid, []).append(session.span())
    stats = dict(_others())
    pids = {
        pid
        for pid, stat in stats.items()
        if (pid, stat.start) in leaders
        or any(since <= stat.start <= until for since, until in spans.get(stat.session, ()))
        or _sees(pid, mount, seen)
        or _has_cookie(pid, cookie)
    }
    while more := {pid for pid, stat in stats.items() if stat.parent in pids} - pids:
        pids |= more
    return [ProcessRecord(pid=pid, start=stats[pid].start) for pid in sorted(pids)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """The resources of several processes: seconds of CPU so far, and bytes of resident memory now."""

    seconds: float
    memory: int


def used_by(leaders: Iterable[ProcessRecord]) -> dict[ProcessRecord, Used]:
    """Return the resources of the sessions of `leaders` with all descendants; those that are gone are absent.

    All is seen by one look at the processes of the machine.
    """
    stats = dict(_others())
    by_session = {leader.pid: leader for leader in leaders if _is_that(stats.get(leader.pid), leader)}
    owners = {pid: by_session[stat.session] for pid, stat in stats.items() if stat.session in by_session}
    strangers = {pid: stat.parent for pid, stat in stats.items() if pid not in owners}
    while more := {pid: owners[parent] for pid, parent in strangers.items() if parent in owners}:
        owners |= more
        strangers = {pid: parent for pid, parent in strangers.items() if pid not in more}
    sums: dict[ProcessRecord, list[int]] = {}
    for pid, owner in owners.items():
        used = sums.setdefault(owner, [0, 0])
        used[0] += stats[pid].cpu_ticks
        used[1] += stats[pid].pages
    return {owner: Used(seconds=ticks / TICKS_PER_S, memory=pages * _PAGE) for owner, (ticks, pages) in sums.items()}


def _is_that(stat: Stat | None, record: ProcessRecord) -> bool:
    return stat is not None and stat.start == record.start


def _others() -> Iterator[tuple[int, Stat]]:
    mine = os.getpid()
    for entry in os.scandir(PROC):
        if entry.name.isdigit() and int(entry.name) != mine:
            stat = read_stat(int(entry.name))
            if stat is not None and not stat.is_dead:
                yield int(entry.name), stat


def _sees(pid: int, mount: str, seen: dict[int, bool]) -> bool:
    """Return True if `mount` is a mount point in the namespace of `pid`; `seen` caches the answer by namespace."""
    number = _mount_namespace(pid)
    if number not in seen:
        try:
            text = (PROC / str(pid) / "mountinfo").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return False
        # proc_pid_mountinfo(5): blanks and the like stand there as octal numbers.
        listed = "".join(f"\\{ord(char):03o}" if char in " \t\n\\" else char for char in mount)
        seen[number] = bool(mount) and any(line.split(" ")[4] == listed for line in text.splitlines())
    return seen[number]


def _has_cookie(pid: int, cookie: bytes) -> bool:
    try:
        return cookie in _environ(pid).split(b"\0")
    except OSError:
        return False


def _environ(pid: int) -> bytes:
    """Return the variables with which `pid` began. Raises OSError when it is gone, not ours, or a thread of the kernel.

    While a process becomes another program the kernel shows none (fs/proc/base.c, environ_read): it is looked at again.
    """
    place = PROC / str(pid)
    deadline, has_none = time.monotonic() + _EXEC_S, 0
    while not (variables := (place / "environ").read_bytes()) and time.monotonic() < deadline:
        # Raises for a thread of the kernel, which is no program.
        (place / "exe").readlink()
        # Where they begin and end, as proc_pid_stat(5) counts: nowhere yet, or at one place where it has none.
        fields = (place / "stat").read_bytes().rpartition(b")")[2].split()
        has_none += int(fields[50 - 3]) == int(fields[51 - 3]) != 0
        if has_none == _LOOKS:
            break
    return variables


def signal_all(records: Iterable[ProcessRecord], number: signal.Signals) -> None:
    """Send a signal to each of these processes that still runs, and to no later holder of its number."""
    for record in records:
        send_signal(record, number)
