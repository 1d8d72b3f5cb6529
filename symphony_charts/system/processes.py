"""Processes and their identity: records that survive pid reuse, signals by pidfd, sessions, members of a run.

Pids are reused, after a reboot and by several containers at once. Anything kept on disk or over time is therefore a
record, and signals go through a pidfd that was verified to belong to exactly that process. Linux only (/proc).
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import select
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from symphony_charts.errors import ToolFailed
from symphony_charts.system.files import mounted

PROC = Path("/proc")
# Windows lacks sysconf; it only imports this.
TICKS_PER_S = os.sysconf("SC_CLK_TCK") if sys.platform != "win32" else 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One boot of one machine, and one pid namespace of it; unknown facts are empty or 0.

    `init_start` is the start of the namespace's first process: the kernel reuses the numbers of namespaces.
    """

    host: str
    machine_id: str
    boot_id: str
    pid_namespace: int
    init_start: int

    def __post_init__(self) -> None:
        """Raise ValueError for other types."""
        texts, numbers = (self.host, self.machine_id, self.boot_id), (self.pid_namespace, self.init_start)
        if set(map(type, texts)) != {str} or set(map(type, numbers)) != {int}:
            raise ValueError("it does not identify a machine")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRecord:
    """One process of one boot: its pid, its start time, and the inode of its pidfd.

    `start` is in clock ticks since the boot. `inode` is unique until reboot (Linux 6.9 and later); 0 on older kernels.
    """

    pid: int
    start: int
    inode: int = 0

    def __post_init__(self) -> None:
        """Raise ValueError for impossible numbers."""
        if {type(self.pid), type(self.start), type(self.inode)} != {int} or self.pid < 1 or self.inode < 0:
            raise ValueError("it does not identify a process")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stat:
    """The kernel's facts of a process: `start` as in `ProcessRecord`, CPU time so far, and pages of resident memory."""

    is_dead: bool
    is_stopped: bool
    parent: int
    session: int
    start: int
    cpu_ticks: int
    pages: int


def read_stat(pid: int) -> Stat | None:
    """Return the kernel's facts of `pid`, or of a zombie, whose pid is still in use; None if there is none."""
    try:
        text = (PROC / str(pid) / "stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    # The name in parentheses may contain spaces and parentheses; proc_pid_stat(5) counts fields from 1.
    fields = text.rpartition(b")")[2].split()
    state, parent, session, start = fields[0], int(fields[1]), int(fields[3]), int(fields[19])
    return Stat(
        is_dead=state in (b"Z", b"X"),
        is_stopped=state in (b"T", b"t"),
        parent=parent,
        session=session,
        start=start,
        cpu_ticks=int(fields[11]) + int(fields[12]),
        pages=int(fields[21]),
    )


def open_identified(pid: int) -> tuple[int, ProcessRecord] | None:
    """Return a pidfd and the record of the current process `pid`; None if there is none, not even a zombie."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError as error:
        _refuse_other(error)
        return None
    stat = read_stat(pid)
    if stat is None:
        os.close(descriptor)
        return None
    return descriptor, ProcessRecord(pid=pid, start=stat.start, inode=_inode_of(descriptor))


def identify(pid: int) -> ProcessRecord | None:
    """Return the record of `pid`, None if it has ended. Only its parent can rule out pid reuse."""
    opened = open_identified(pid)
    if opened is None:
        return None
    os.close(opened[0])
    return None if _is_dead(pid) else opened[1]


def open_verified(record: ProcessRecord) -> int | None:
    """Return a pidfd of exactly the process in `record`, None if it has ended.

    The descriptor is opened before the identity is checked: a pid that passes the check belongs to the opened process,
    so that there is no race with pid reuse.
    """
    opened = open_identified(record.pid)
    if opened is None:
        return None
    descriptor, found = opened
    is_it = found.start == record.start and (found.inode == record.inode or 0 in (found.inode, record.inode))
    if is_it and not _is_dead(record.pid):
        return descriptor
    os.close(descriptor)
    return None


def _is_dead(pid: int) -> bool:
    stat = read_stat(pid)
    return stat is None or stat.is_dead


@contextlib.contextmanager
def verified(record: ProcessRecord | None) -> Iterator[int | None]:
    """Open a pidfd as `open_verified` does, for the time of a `with`; None also without a record."""
    descriptor = None if record is None else open_verified(record)
    try:
        yield descriptor
    finally:
        if descriptor is not None:
            os.close(descriptor)


def is_running(record: ProcessRecord | None) -> bool:
    with verified(record) as descriptor:
        return descriptor is not None


def send_signal(record: ProcessRecord | None, number: signal.Signals) -> bool:
    """Send a signal to exactly that process; return False if it has ended or is not ours."""
    with verified(record) as descriptor:
        if descriptor is None:
            return False
        try:
            signal.pidfd_send_signal(descriptor, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True


def has_ended_within(descriptor: int, timeout_s: float | None) -> bool:
    """Wait for the process of a pidfd to end; return False if it has not after `timeout_s` seconds."""
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    return bool(waiting.poll(None if timeout_s is None else max(0.0, timeout_s * 1000)))


def this_machine() -> Machine:
    init = read_stat(1)
    return Machine(
        host=os.uname().nodename,
        machine_id=_line_of("/etc/machine-id"),
        boot_id=_line_of("/proc/sys/kernel/random/boot_id"),
        pid_namespace=(PROC / "self" / "ns" / "pid").stat().st_ino,
        init_start=init.start if init else 0,
    )


def ticks_now() -> int:
    """Return the current time in ticks of `ProcessRecord.start`: later starts have at least this number."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) * TICKS_PER_S // 10**9


def _refuse_other(error: OSError) -> None:
    """Ignore errors that mean "no such process"; raise `error` otherwise, as ToolFailed if it is permanent."""
    if error.errno in (errno.ENOSYS, errno.EPERM):
        raise ToolFailed(
            f"this system does not support pidfds: pidfd_open: {error.strerror}",
            next="use Linux 5.3 or later, and allow the system call pidfd_open (seccomp)",
        ) from error
    if error.errno not in (errno.ESRCH, errno.EINVAL):
        raise error


def _inode_of(descriptor: int) -> int:
    """Return the inode of a pidfd, 0 before Linux 6.9, where all share one anonymous inode."""
    status = os.fstat(descriptor)
    return 0 if status.st_dev == _anonymous_device() else status.st_ino


@functools.cache
def _anonymous_device() -> int:
    with select.epoll() as descriptor:
        return os.fstat(descriptor.fileno()).st_dev


def _line_of(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


# Time for an exec to complete, in seconds: microseconds usually, more while a busy machine delays it.
_EXEC_S = 0.1
_LOOKS = 3
if sys.platform != "win32":
    _PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The POSIX session of `leader`, last seen running at tick `until` (of `ticks_now`).

    The kernel reuses a session id once its leader and all members have ended. A process with this id that started while
    the leader ran is a member. One that started later may belong to another session.
    """

    leader: ProcessRecord
    until: int

    def span(self) -> tuple[int, float]:
        """The range of start times for which a process with the session's id is a member."""
        stat = read_stat(self.leader.pid)
        # A zombie keeps its pid.
        is_there = stat is not None and stat.start == self.leader.start
        return self.leader.start, float("inf") if is_there else self.until


def _mount_namespace(pid: int) -> int:
    try:
        return (PROC / str(pid) / "ns" / "mnt").stat().st_ino
    except OSError:
        return 0


def inside(pid: int, command: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return argv and environment that run `command` with the mounts, folder and variables of `pid`. Raises OSError."""
    env = environment(pid)
    if _mount_namespace(pid) in (0, _mount_namespace(os.getpid())):
        return ["env", "-C", f"/proc/{pid}/cwd", "--", *command], env
    enter = ["nsenter", f"--mount=/proc/{pid}/ns/mnt", f"--wd=/proc/{pid}/cwd"]
    owner = PROC / str(pid) / "ns" / "user"
    if owner.stat().st_ino != (PROC / "self" / "ns" / "user").stat().st_ino:
        # An unprivileged user owns the mounts through a user namespace, which must be entered with them.
        enter[1:1] = [f"--user={owner}", "--preserve-credentials"]
    return [*enter, "--", *command], env


def members(mount: str, sessions: Iterable[Session], cookie: bytes) -> list[ProcessRecord]:
    """Return all processes that have `mount` among their mounts, are in one of `sessions`, or started with `cookie`.

    Includes their descendants, as far as the kernel still links them. `mount` is a mount point that exists only in the
    namespaces of one run (empty: none); `cookie` is ``NAME=value``. The caller and its namespace never count. The
    kernel reuses namespace ids, so they prove nothing by themselves.
    """
    seen: dict[int, bool] = {_mount_namespace(os.getpid()): False, 0: False}
    spans: dict[int, list[tuple[int, float]]] = {}
    # A leader counts before it has opened its session, like tmux's child that becomes a pane.
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


def holders(path: Path) -> list[int]:
    """Return the pids of all other processes here that have the file `path` open, as far as we may see that."""
    with contextlib.suppress(OSError):
        wanted = path.stat()
        pids = openers(lambda descriptor: os.path.samestat(descriptor.stat(), wanted))
        return [pid for pid in pids if pid != os.getpid()]
    return []


def openers(is_wanted: Callable[[Path], bool]) -> Iterator[int]:
    """Yield the pids of the processes here that have a wanted descriptor (``/proc/PID/fd/NUMBER``) open."""
    for pid in filter(str.isdigit, os.listdir(PROC)):  # noqa: PTH208 - names only
        with contextlib.suppress(OSError):
            for descriptor in (PROC / pid / "fd").iterdir():
                # A descriptor may be closed meanwhile.
                with contextlib.suppress(OSError):
                    if is_wanted(descriptor):
                        yield int(pid)
                        break


def command_line(pid: int) -> list[str]:
    """Return the argv of `pid`; empty if it is gone or a kernel thread."""
    with contextlib.suppress(OSError):
        return os.fsdecode((PROC / str(pid) / "cmdline").read_bytes()).split("\0")[:-1]
    return []


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """The resources of several processes: seconds of CPU so far, and bytes of resident memory now."""

    seconds: float
    memory: int


def used_by(leaders: Iterable[ProcessRecord]) -> dict[ProcessRecord, Used]:
    """Return the resources of the sessions of `leaders` with all descendants, without leaders that are gone."""
    stats = dict(_others())
    by_session = {
        leader.pid: leader for leader in leaders if (stat := stats.get(leader.pid)) and stat.start == leader.start
    }
    owners = {pid: by_session[stat.session] for pid, stat in stats.items() if stat.session in by_session}
    strangers = {pid: stat.parent for pid, stat in stats.items() if pid not in owners}
    while more := {pid: owners[parent] for pid, parent in strangers.items() if parent in owners and pid not in owners}:
        owners |= more
    ticks, pages = Counter[ProcessRecord](), Counter[ProcessRecord]()
    for pid, owner in owners.items():
        ticks[owner] += stats[pid].cpu_ticks
        pages[owner] += stats[pid].pages
    return {owner: Used(seconds=ticks[owner] / TICKS_PER_S, memory=pages[owner] * _PAGE) for owner in pages}


def _others() -> Iterator[tuple[int, Stat]]:
    mine = os.getpid()
    for entry in os.scandir(PROC):
        if entry.name.isdigit() and int(entry.name) != mine:
            stat = read_stat(int(entry.name))
            if stat is not None and not stat.is_dead:
                yield int(entry.name), stat


def _sees(pid: int, mount: str, seen: dict[int, bool]) -> bool:
    number = _mount_namespace(pid)
    if number not in seen:
        try:
            seen[number] = bool(mount) and any(one.path == mount for one in mounted(pid))
        except OSError:
            return False
    return seen[number]


def _has_cookie(pid: int, cookie: bytes) -> bool:
    try:
        return cookie in _environ(pid).split(b"\0")
    except OSError:
        return False


def environment(pid: int) -> dict[str, str]:
    """Return the variables with which `pid` started. Raises OSError if it is gone, not ours, or a kernel thread."""
    return dict(entry.split("=", 1) for entry in os.fsdecode(_environ(pid)).split("\0") if "=" in entry)


def _environ(pid: int) -> bytes:
    # During exec the kernel shows none (fs/proc/base.c, environ_read), so an empty result is retried.
    place = PROC / str(pid)
    deadline, has_none = time.monotonic() + _EXEC_S, 0
    while not (variables := (place / "environ").read_bytes()) and time.monotonic() < deadline:
        # Raises for a kernel thread, which has no executable.
        (place / "exe").readlink()
        # Start and end of the environment (proc_pid_stat(5)): both 0 during exec, equal if there is none.
        fields = (place / "stat").read_bytes().rpartition(b")")[2].split()
        has_none += int(fields[50 - 3]) == int(fields[51 - 3]) != 0
        if has_none == _LOOKS:
            break
    return variables


def signal_all(records: Iterable[ProcessRecord], number: signal.Signals) -> None:
    """Send a signal to each of these processes that still runs, and to no later holder of its pid."""
    for record in records:
        send_signal(record, number)
