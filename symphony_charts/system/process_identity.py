"""A `ProcessRecord` tells one process from every later holder of its number, and a `Machine` one boot from another.

Numbers of processes are used again: after a reboot and in a container at once. So what is kept on disk or over time is
a record, and a signal goes through a pidfd that was found to be of exactly that process. Linux only (/proc).
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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from symphony_charts.errors import ToolFailed

__all__ = [
    "PROC",
    "TICKS_PER_S",
    "Machine",
    "ProcessRecord",
    "Stat",
    "has_ended_within",
    "identify",
    "is_running",
    "open_identified",
    "open_verified",
    "read_stat",
    "send_signal",
    "this_machine",
    "ticks_now",
    "verified",
]

PROC = Path("/proc")
# Windows has neither; it only imports this.
TICKS_PER_S = os.sysconf("SC_CLK_TCK") if sys.platform != "win32" else 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One boot of one machine, and one pid namespace of it; unknown facts are empty or 0."""

    host: str
    machine_id: str
    boot_id: str
    pid_namespace: int

    def to_data(self) -> dict[str, object]:
        """Return it as JSON types."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_data(cls, data: object) -> Machine:
        """Return the machine that `to_data` wrote; raises ValueError for anything else."""
        if not isinstance(data, Mapping):
            raise ValueError("it names no machine")
        texts = [data.get(name) for name in ("host", "machine_id", "boot_id")]
        number = data.get("pid_namespace")
        if not all(isinstance(text, str) for text in texts) or not isinstance(number, int):
            raise ValueError("it names no machine")
        host, machine_id, boot_id = map(str, texts)
        return cls(host=host, machine_id=machine_id, boot_id=boot_id, pid_namespace=number)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRecord:
    """One process of one boot: its number, when it started, and the inode of its pidfd.

    `start` is in clock ticks since the boot, as the machine's own time namespace counts them. `inode` is used for one
    process only as long as the machine runs (Linux 6.9 and later); 0 where the kernel has none.
    """

    pid: int
    start: int
    inode: int = 0

    def __post_init__(self) -> None:
        """Raise ValueError for numbers that no process can have; a time namespace may shift `start` below 0."""
        if self.pid < 1 or self.inode < 0:
            raise ValueError("it is no process")

    def to_data(self) -> dict[str, int]:
        """Return it as JSON types."""
        return {"pid": self.pid, "start": self.start, "inode": self.inode}

    @classmethod
    def from_data(cls, data: object) -> ProcessRecord | None:
        """Return the record that `to_data` wrote; None for anything else: a bare number proves nothing."""
        if not isinstance(data, Mapping):
            return None
        numbers = [data.get(name) for name in ("pid", "start", "inode")]
        if not all(type(number) is int and number >= 0 for number in numbers) or not numbers[0]:
            return None
        pid, start, inode = (int(str(number)) for number in numbers)
        return cls(pid=pid, start=start, inode=inode)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stat:
    """The kernel's facts of a process: its parent and session, and when it started (as in `ProcessRecord`).

    `cpu_ticks` is the time that it has computed, `pages` the memory that it has now.
    """

    is_dead: bool
    is_stopped: bool
    parent: int
    session: int
    start: int
    cpu_ticks: int
    pages: int


def read_stat(pid: int) -> Stat | None:
    """Return the kernel's facts of `pid`, also of a zombie, whose number is not free yet; None if there is none."""
    try:
        text = (PROC / str(pid) / "stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    # The name in parentheses may hold anything, spaces and parentheses included; proc_pid_stat(5) counts from 1.
    fields = text.rpartition(b")")[2].split()
    state, parent, session, start = fields[0], int(fields[1]), int(fields[3]), int(fields[19])
    return Stat(
        is_dead=state in (b"Z", b"X"),
        is_stopped=state in (b"T", b"t"),
        parent=parent,
        session=session,
        start=start - _tick_offset(),
        cpu_ticks=int(fields[11]) + int(fields[12]),
        pages=int(fields[21]),
    )


def open_identified(pid: int) -> tuple[int, ProcessRecord] | None:
    """Return a pidfd of whatever `pid` is now, and who that is; None when nothing is, not even a zombie."""
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
    """Return the record of `pid`, None if it has ended. Only its parent knows that the number was not reused."""
    opened = open_identified(pid)
    if opened is None:
        return None
    os.close(opened[0])
    stat = read_stat(pid)
    return None if stat is None or stat.is_dead else opened[1]


def open_verified(record: ProcessRecord) -> int | None:
    """Return a pidfd of exactly the process in `record`, None when that has ended.

    The descriptor comes first and the look second: what the look finds is then never an earlier holder of the number
    than what the descriptor holds, so that there is no moment in which another could be taken for it.
    """
    try:
        descriptor = os.pidfd_open(record.pid)
    except OSError as error:
        _refuse_other(error)
        return None
    stat = read_stat(record.pid)
    is_it = stat is not None and not stat.is_dead and stat.start == record.start
    if is_it and record.inode and (inode := _inode_of(descriptor)):
        is_it = inode == record.inode
    if not is_it:
        os.close(descriptor)
        return None
    return descriptor


@contextlib.contextmanager
def verified(record: ProcessRecord | None) -> Iterator[int | None]:
    """`open_verified` for the time of a `with`; None also where there is no record."""
    descriptor = None if record is None else open_verified(record)
    try:
        yield descriptor
    finally:
        if descriptor is not None:
            os.close(descriptor)


def is_running(record: ProcessRecord | None) -> bool:
    """Return True if exactly that process runs."""
    with verified(record) as descriptor:
        return descriptor is not None


def send_signal(record: ProcessRecord | None, number: signal.Signals) -> bool:
    """Send a signal to exactly that process; False where it has ended or is not ours."""
    with verified(record) as descriptor:
        if descriptor is None:
            return False
        try:
            signal.pidfd_send_signal(descriptor, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True


def has_ended_within(descriptor: int, timeout_s: float | None) -> bool:
    """Wait until the process of a pidfd has ended; False when it has not after `timeout_s` seconds."""
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    return bool(waiting.poll(None if timeout_s is None else max(0.0, timeout_s * 1000)))


def this_machine() -> Machine:
    """Return the machine, boot and pid namespace in which this program runs."""
    return Machine(
        host=os.uname().nodename,
        machine_id=_line_of("/etc/machine-id"),
        boot_id=_line_of("/proc/sys/kernel/random/boot_id"),
        pid_namespace=(PROC / "self" / "ns" / "pid").stat().st_ino,
    )


def ticks_now() -> int:
    """Return the present in ticks of `ProcessRecord.start`: later starts have at least this number."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) * TICKS_PER_S // 10**9 - _tick_offset()


def _refuse_other(error: OSError) -> None:
    """Ignore errors that mean "no such process"; raise `error` otherwise, as ToolFailed if it is permanent."""
    if error.errno in (errno.ENOSYS, errno.EPERM):
        raise ToolFailed(
            f"this system does not tell processes apart: pidfd_open: {error.strerror}",
            next="use Linux 5.3 or later, and allow pidfd_open where system calls are filtered",
        ) from error
    if error.errno not in (errno.ESRCH, errno.EINVAL):
        raise error


@functools.cache
def _tick_offset() -> int:
    """Return what a time namespace adds to the start times that this program reads."""
    with contextlib.suppress(OSError, ValueError):
        for line in (PROC / "self" / "timens_offsets").read_text(encoding="ascii").splitlines():
            name, seconds, nanoseconds = line.split()
            if name == "boottime":
                return int(seconds) * TICKS_PER_S + int(nanoseconds) * TICKS_PER_S // 10**9
    return 0


def _inode_of(descriptor: int) -> int:
    """Return the inode of a pidfd, 0 before Linux 6.9, where all share one anonymous inode."""
    status = os.fstat(descriptor)
    return 0 if status.st_dev == _anonymous_device() else status.st_ino


@functools.cache
def _anonymous_device() -> int:
    descriptor = select.epoll()
    try:
        return os.fstat(descriptor.fileno()).st_dev
    finally:
        descriptor.close()


def _line_of(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
