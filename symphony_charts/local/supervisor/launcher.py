"""Start the supervisor of a run: both ends of the channel between `up` and a new supervisor.

tmux answers no client until it has started everything. So each wrapper reports its slot itself, through the pipe
``born`` in the run's folder (lines of slot and pid), and `up` reports its steps through a `StartupChannel`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from symphony_charts.errors import ToolFailed
from symphony_charts.local.runs import Run
from symphony_charts.local.supervisor.events import Loop

# Timeout, in seconds, for a busy machine to import a program or to list a thousand panes.
_PATIENCE_S = 30.0
# The folders of this package and of msgspec: without `site`, Python may not find them.
_ROOTS = [str(Path(__file__).parents[3]), str(Path(msgspec.__file__).parents[1])]


class SupervisorProcess:
    """A supervisor that was just started, for `run` or `ahead` of it.

    With `is_start` it waits for the message that the run's folder is complete, replies when it watches, and waits for
    the message that everything was started. After that, or else at once, it takes over the running processes and
    replies with the number of panes.
    """

    def __init__(self, run: Run | None, *, is_start: bool = False) -> None:
        self._channel, theirs = socket.socketpair()
        self._channel.settimeout(_PATIENCE_S)
        self._log = ""
        # Not a Popen object: the supervisor outlives this program, which does not wait for it. It does not need `site`,
        # which would take a tenth of its start time.
        argv = [
            sys.executable,
            "-S",
            "-m",
            "symphony_charts.local.supervisor.supervisor",
            "start" if is_start else "go on",
        ]
        with theirs:
            self.pid = os.posix_spawn(
                sys.executable,
                argv,
                {**os.environ, "PYTHONPATH": os.pathsep.join(_ROOTS)},
                file_actions=[(os.POSIX_SPAWN_DUP2, theirs.fileno(), 0)],
                setsid=True,
            )
        if run is not None:
            self.attach(run)

    @classmethod
    def ahead(cls) -> SupervisorProcess:
        """Start one for a run that is about to start; it exits if it is closed without a run."""
        return cls(None, is_start=True)

    @property
    def descriptor(self) -> int:
        """The end of the channel whose last copy, when closed, informs the supervisor that its caller is gone."""
        return self._channel.fileno()

    def attach(self, run: Run) -> None:
        """Make it the supervisor of `run`, whose folder exists."""
        self._log = str(run.folder / "supervisor.log")
        self._send(f"{run.folder}\n")

    def notify(self) -> None:
        """Report that the next step is done."""
        self._send("\n")

    def _send(self, text: str) -> None:
        try:
            self._channel.sendall(text.encode())
        except OSError as error:
            raise self._not_started() from error

    def await_reply(self) -> int:
        """Wait for the number in its reply. Raises ToolFailed if there is none."""
        line = b""
        try:
            while not line.endswith(b"\n"):
                more = self._channel.recv(1 << 12)
                if not more:
                    raise self._not_started()
                line += more
        except OSError as error:
            raise self._not_started() from error
        if not line.strip().isdigit():
            why = line.decode("utf-8", "replace").strip()
            raise ToolFailed(f"the supervisor of the run did not start: {why}", self._log)
        return int(line)

    def close(self) -> None:
        """Close the channel; the supervisor keeps running."""
        self._channel.close()

    def kill(self) -> None:
        """Kill it at once, before it notices the closed channel."""
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        self.close()

    def _not_started(self) -> ToolFailed:
        return ToolFailed("the supervisor of the run did not start", self._log)


if sys.platform != "win32":
    import resource

# Besides a pidfd for each process: state, logs, probes, and Python's own files.
_SPARE_FDS = 64
# At most this fraction of the start time (1/5) goes into writing the state.
_SAVING = 5


class StartupChannel:
    """The socket `descriptor` to the program that started this supervisor."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def wait(self) -> bool:
        """Wait for the next byte; return False if the other end is closed."""
        return bool(self._read())

    def _read(self) -> bytes:
        # A peer that exits without reading all of its input resets the connection.
        with contextlib.suppress(ConnectionResetError):
            return os.read(self.descriptor, 1)
        return b""

    def folder(self) -> str:
        """Wait for the folder of the run and redirect output to its log; return "" if the other end is closed."""
        line = b""
        while not line.endswith(b"\n"):
            more = self._read()
            if not more:
                return ""
            line += more
        folder = os.fsdecode(line[:-1])
        try:
            log = os.open(f"{folder}/supervisor.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        except OSError:
            # Without a log file discard the output: it must not appear on the caller's terminal.
            log = os.open(os.devnull, os.O_WRONLY)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
        return folder

    def send(self, number: int) -> None:
        """Send a number; the other end may be closed."""
        self._write(str(number))

    def refuse(self, why: str) -> None:
        """Send, instead of a number, the reason why there will be no supervisor."""
        self._write(why.replace("\n", " "))

    def _write(self, line: str) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            os.write(self.descriptor, f"{line}\n".encode())

    def close(self) -> None:
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, self.descriptor)
        os.close(null)


def log_line(text: str) -> None:
    """Write a line to the log of the supervisor; on a full disk only this line is lost."""
    with contextlib.suppress(OSError):
        os.write(2, f"{text}\n".encode())


def raise_descriptor_limit(count: int) -> None:
    """Raise the limit of open files so that there is a descriptor for each of `count` processes, if allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = count + _SPARE_FDS
    if soft < needed:
        allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))


def attend_start(
    loop: Loop, pipe: Path, channel: StartupChannel, started: Callable[[int, int], None], save: Callable[[], object]
) -> bool:
    """Call `started` with slot and pid of each wrapper, and `save` now and then, until everything has been started.

    Returns False if `channel` closed before that: then no further process is started.
    """
    reader = os.open(pipe, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    rest, is_starting, is_whole, saved_until = b"", True, False, 0.0

    def read() -> None:
        nonlocal rest
        *lines, rest = (rest + os.read(reader, 1 << 16)).split(b"\n")
        for fields in (line.split() for line in lines):
            # Processes of the run can write to this pipe as well; ignore invalid lines.
            if len(fields) == 2 and all(field.isdigit() for field in fields):
                started(int(fields[0]), int(fields[1]))

    def receive() -> None:
        nonlocal is_starting, is_whole
        is_starting, is_whole = False, channel.wait()

    loop.watch(reader, read)
    loop.watch(channel.descriptor, receive)
    channel.send(0)
    while is_starting:
        began = time.monotonic()
        if began >= saved_until:
            save()
            saved_until = began + _SAVING * (time.monotonic() - began)
        else:
            loop.later(saved_until - began, lambda: None)
        loop.turn()
    for descriptor in (reader, channel.descriptor):
        loop.forget(descriptor)
    os.close(reader)
    return is_whole
