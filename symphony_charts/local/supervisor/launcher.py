"""`SupervisorProcess` starts the supervisor of a run, and speaks with it until it has taken over."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
from pathlib import Path

import msgspec

from symphony_charts.errors import ToolFailed
from symphony_charts.local.runs import Run

__all__ = ["SupervisorProcess"]

# What a busy machine may take to import a program or to list a thousand panes, in seconds.
_PATIENCE_S = 30.0
# The folders of this package and of msgspec, which without `site` are not found where they are installed apart.
_ROOTS = [str(Path(__file__).parents[3]), str(Path(msgspec.__file__).parents[1])]


class SupervisorProcess:
    """A supervisor that was just started, for `run` or `ahead` of it.

    With `is_start` it waits to be told that the run's folder is complete, answers when it watches, and waits to be
    told that everything was started. Else, and then, it takes over what runs and answers with the number of panes.
    """

    def __init__(self, run: Run | None, *, is_start: bool = False) -> None:
        self._channel, theirs = socket.socketpair()
        self._channel.settimeout(_PATIENCE_S)
        self._log = ""
        # Not a Popen object: the supervisor outlives this program and is nobody's to wait for. It needs nothing of
        # `site`, which takes a tenth of its start.
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
        """The end of the channel whose last copy, when closed, tells the supervisor that its caller is gone."""
        return self._channel.fileno()

    def attach(self, run: Run) -> None:
        """Make it the supervisor of `run`, whose folder exists."""
        self._log = str(run.folder / "supervisor.log")
        try:
            self._channel.sendall(f"{run.folder}\n".encode())
        except OSError as error:
            raise self._not_started() from error

    def notify(self) -> None:
        """Report that the next step is done."""
        try:
            self._channel.sendall(b"\n")
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
        """Close the channel; the supervisor stays."""
        self._channel.close()

    def kill(self) -> None:
        """End it at once, before it notices that nobody speaks with it any more."""
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        self.close()

    def _not_started(self) -> ToolFailed:
        return ToolFailed("the supervisor of the run did not start", self._log)
