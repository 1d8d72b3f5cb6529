"""Starting the supervisor of a run, and speaking with it until it has taken over."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
from pathlib import Path

from symphony_charts.cluster.local_store import Run
from symphony_charts.errors import ToolFailed

__all__ = ["NewSupervisor"]

# What a busy machine may take to import a program or to list a thousand panes, in seconds.
_PATIENCE_S = 30.0


class NewSupervisor:
    """A supervisor that was just started for `run`.

    With `is_start` it waits to be told that the run's folder is complete, answers when it watches, and waits to be
    told that everything was started. Else, and then, it takes over what runs and answers with the number of panes.
    """

    def __init__(self, run: Run, *, is_start: bool = False) -> None:
        self._log = run.folder / "supervisor.log"
        self._channel, theirs = socket.socketpair()
        self._channel.settimeout(_PATIENCE_S)
        opened = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        # Not a Popen object: the supervisor outlives this program and is nobody's to wait for. It needs nothing of
        # `site`, which takes a tenth of its start.
        argv = [sys.executable, "-S", "-m", "symphony_charts.cluster.local_supervisor", str(run.folder)]
        with theirs:
            self.pid = os.posix_spawn(
                sys.executable,
                [*argv, "start"] if is_start else argv,
                {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, theirs.fileno(), 0),
                    (os.POSIX_SPAWN_OPEN, 1, str(self._log), opened, 0o600),
                    (os.POSIX_SPAWN_DUP2, 1, 2),
                ],
                setsid=True,
            )

    def tell(self) -> None:
        """Say that the next step is done."""
        try:
            self._channel.sendall(b"\n")
        except OSError as error:
            raise self._gone() from error

    def answer(self) -> int:
        """Wait for the number it answers with. Raises ToolFailed when it does not."""
        said = b""
        try:
            while not said.endswith(b"\n"):
                more = self._channel.recv(16)
                if not more:
                    raise self._gone()
                said += more
        except OSError as error:
            raise self._gone() from error
        return int(said)

    def close(self) -> None:
        """Leave it to itself."""
        self._channel.close()

    def kill(self) -> None:
        """End it at once."""
        self.close()
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)

    def _gone(self) -> ToolFailed:
        return ToolFailed("the supervisor of the run did not start", str(self._log))
