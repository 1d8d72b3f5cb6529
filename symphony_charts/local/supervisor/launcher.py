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


class Channel:
    """Messages between `up` and a supervisor through the socket `end`."""

    def __init__(self, end: socket.socket) -> None:
        self._end, self._file = end, end.makefile("rb")

    def send(self, message: Mapping[str, object]) -> None:
        """Send a message; `receive` shows if the other end is gone."""
        with contextlib.suppress(OSError):
            self._end.sendall(json.dumps(message).encode() + b"\n")

    def receive(self) -> dict[str, Any]:
        """Wait for a message; return an empty one if the other end is closed or silent."""
        line = b""
        # A peer that exits without reading all of its input resets the connection.
        with contextlib.suppress(OSError):
            line = self._file.readline()
        message: dict[str, Any] = json.loads(line) if line.endswith(b"\n") else {}
        return message

    def close(self) -> None:
        self._file.close()
        self._end.close()


class SupervisorProcess:
    """A supervisor that was just started; it exits if it is closed without a run.

    If it is closed during a start, before the second message, it ends and removes the run.
    """

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        ours.settimeout(_PATIENCE_S)
        self._channel, self._log, self._is_starting_tmux = Channel(ours), "", False
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
        self._channel.send({"folder": str(run.folder), "server": list(server), "count": count})

    def start_all(self, commits: Mapping[str, str]) -> int:
        """Start all processes of the run, whose folder is complete; return their number."""
        self._is_starting_tmux = False
        self._channel.send({"commits": dict(commits)})
        return self.await_reply()

    def await_reply(self) -> int:
        """Wait for the number of panes. Raises ToolFailed, as the supervisor did or if it does not answer."""
        answer = self._channel.receive()
        if not answer:
            raise ToolFailed("the supervisor of the run did not start", self._log)
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


def refusal(error: SymphError | OSError) -> dict[str, object]:
    """Return the message of a supervisor that gives up: the arguments of ToolFailed."""
    if isinstance(error, OSError):
        return {"what": f"{error.strerror}: {error.filename}"}
    facts = {"status": error.status, "stderr": error.stderr} if isinstance(error, ToolFailed) else {}
    return {"what": error.what, "at": error.at, "next": error.next, **facts}


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
    """Call `work` in a thread while the loop turns. Raises the errors that it raises."""
    results: list[Exception | None] = []

    def call() -> None:
        error = None
        try:
            work()
        except Exception as raised:  # raised again below
            error = raised
        loop.call(lambda: results.append(error))

    threading.Thread(target=call).start()
    while not results:
        loop.turn()
    if results[0]:
        raise results[0]
