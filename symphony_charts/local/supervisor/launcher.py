"""Start the supervisor of a run: both ends of the channel between `up` and a new supervisor.

Messages are lines of JSON. `up` sends an order: the folder of a run to supervise, and for a start what tmux needs; once
the folder is complete, a second one. The supervisor answers with the number of panes, or with an error.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from symphony_charts.errors import SymphError, ToolFailed
from symphony_charts.local.run_files import SUPERVISOR
from symphony_charts.local.runs import Run
from symphony_charts.local.supervisor.loop import Loop

# Timeout, in seconds, for a busy machine to import a program, and to start or list a thousand panes.
_PATIENCE_S = 90.0
# The folders of this package and of msgspec: without `site`, Python may not find them.
_ROOTS = [str(Path(__file__).parents[3]), str(Path(msgspec.__file__).parents[1])]


class SupervisorProcess:
    """A supervisor that was just started; it exits if it is closed without a run.

    If it is closed during a start, before the second message, it ends and removes the run.
    """

    def __init__(self) -> None:
        self._channel, theirs = socket.socketpair()
        self._channel.settimeout(_PATIENCE_S)
        self._log, self._is_starting_tmux = "", False
        # Not a Popen object: the supervisor outlives this program, which does not wait for it. It does not need `site`,
        # which would take a tenth of its start time.
        argv = [sys.executable, "-S", "-m", SUPERVISOR]
        with theirs:
            self.pid = os.posix_spawn(
                sys.executable,
                argv,
                {**os.environ, "PYTHONPATH": os.pathsep.join(_ROOTS)},
                file_actions=[(os.POSIX_SPAWN_DUP2, theirs.fileno(), 0)],
                setsid=True,
            )

    def supervise(self, run: Run, server: Sequence[str] = (), count: int = 0) -> None:
        """Make it the supervisor of `run`, whose folder exists.

        With a `count` of processes it starts the tmux server first, with `server` before its argv.
        """
        self._log = str(run.folder / "supervisor.log")
        self._is_starting_tmux = bool(count)
        self._send({"folder": str(run.folder), "server": list(server), "count": count})

    def start_all(self, commits: Mapping[str, str]) -> int:
        """Start all processes of the run, whose folder is complete; return their number."""
        self._is_starting_tmux = False
        self._send({"commits": dict(commits)})
        return self.await_reply()

    def _send(self, message: Mapping[str, object]) -> None:
        try:
            self._channel.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            # It has refused, or is gone; reading its answer raises the error.
            self.await_reply()

    def await_reply(self) -> int:
        """Wait for the number of panes. Raises ToolFailed, as the supervisor did or if it does not answer."""
        line = b""
        with contextlib.suppress(OSError):
            while not line.endswith(b"\n") and (more := self._channel.recv(1 << 16)):
                line += more
        if not line.endswith(b"\n"):
            raise ToolFailed("the supervisor of the run did not start", self._log)
        answer = json.loads(line)
        if "count" not in answer:
            raise ToolFailed(**answer)
        return int(answer["count"])

    def close(self) -> None:
        """Close the channel; the supervisor keeps running."""
        self._channel.close()

    def cancel(self) -> None:
        """End the start: kill the supervisor, or let it end the tmux server that it is starting."""
        self.close()
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            if not self._is_starting_tmux:
                os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)


if sys.platform != "win32":
    import resource

# Besides a pidfd for each process: state, logs, probes, and Python's own files.
_SPARE_FDS = 64
# Interval for checking if a thread has ended, in seconds.
_TURN_S = 0.005


class StartupChannel:
    """The socket `descriptor` to the program that started this supervisor."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._file = open(descriptor, "rb", closefd=False)  # noqa: SIM115 - open as long as this program runs

    def message(self) -> dict[str, Any]:
        """Wait for a message; return an empty one if the other end is closed."""
        line = b""
        # A peer that exits without reading all of its input resets the connection.
        with contextlib.suppress(ConnectionResetError):
            line = self._file.readline()
        message: dict[str, Any] = json.loads(line) if line.endswith(b"\n") else {}
        return message

    def send(self, count: int) -> None:
        """Send the number of panes; the other end may be closed."""
        self._write({"count": count})

    def refuse(self, error: SymphError | OSError) -> None:
        """Send, instead of a number, the reason why there will be no supervisor."""
        log_line(str(error))
        if isinstance(error, OSError):
            self._write({"what": f"{error.strerror}: {error.filename}"})
        else:
            facts = {"status": error.status, "stderr": error.stderr} if isinstance(error, ToolFailed) else {}
            self._write({"what": error.what, "at": error.at, "next": error.next, **facts})

    def _write(self, message: Mapping[str, object]) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            os.write(self.descriptor, json.dumps(message).encode() + b"\n")

    def close(self) -> None:
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, self.descriptor)
        os.close(null)


def log_to(path: Path) -> None:
    """Redirect all output to the file `path`, or discard it: it must not reach the terminal of the caller."""
    try:
        log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError:
        log = os.open(os.devnull, os.O_WRONLY)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)


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


def run_beside(loop: Loop, work: Callable[[], None]) -> None:
    """Call `work` in a thread while the loop turns. Raises the SymphError that it raises."""
    errors: list[SymphError] = []

    def call() -> None:
        try:
            work()
        except SymphError as error:
            errors.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    while thread.is_alive():
        loop.later(_TURN_S, lambda: None)
        loop.turn()
    if errors:
        raise errors[0]
