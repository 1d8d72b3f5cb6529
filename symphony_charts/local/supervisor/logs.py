"""Record the growth of process logs, cut long ones, and reopen the pipes that a full disk has closed.

A log holds the raw bytes; inotify reports its growth. The program that writes a log exits on a write error, and tmux
then writes nothing more to the log.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from symphony_charts.errors import SymphError
from symphony_charts.local import tmux_client
from symphony_charts.local.logs import Clock, LogFile
from symphony_charts.local.plan.records import log_pipe
from symphony_charts.local.runs import Run
from symphony_charts.local.supervisor.launcher import log_line
from symphony_charts.local.supervisor.loop import Loop
from symphony_charts.system.files import full_disk
from symphony_charts.system.inotify import MODIFY, OVERFLOW, Inotify

_FULL = (errno.ENOSPC, errno.EDQUOT)


class LogClock:
    """Records when each of `logs` grew. `descriptor` becomes readable when there is something to `note`.

    `limits` has the maximum number of bytes per log, of which at least three quarters are kept (0: unlimited).
    """

    def __init__(self, logs: Sequence[Path], limits: Sequence[int] = ()) -> None:
        self._inotify = Inotify()
        self.descriptor = self._inotify.descriptor
        self._logs: dict[int, Path] = {}
        self._sizes: dict[Path, int] = {}
        self._limits: dict[Path, int] = {}
        self._last_ms = 0
        # Logs without a watch, because the kernel's limit is reached; checked whenever another log has grown.
        self._unwatched: list[Path] = []
        for number, log in enumerate(logs):
            self.add(log, limits[number] if limits else 0)
        self._note(self._sizes)

    def add(self, log: Path, limit: int) -> None:
        """Record the growth of another log."""
        log.touch(mode=0o600)
        try:
            self._logs[self._inotify.add(log, MODIFY)] = log
        except OSError:
            self._unwatched.append(log)
        clock = Clock(log)
        moment, self._sizes[log] = clock[len(clock) - 1] if clock else (0, 0)
        self._last_ms = max(self._last_ms, moment)
        if limit:
            self._limits[log] = limit

    def note(self) -> None:
        """Record time and size of every log that has grown since."""
        self._note(self._grown())

    def _note(self, logs: Iterable[Path]) -> None:
        # Searches by time need an ascending index, even if the clock of this machine goes back.
        self._last_ms = max(self._last_ms, int(time.time() * 1000))
        for log in logs:
            size = log.stat().st_size
            if size > self._sizes[log]:
                self._cut(log, size)
                try:
                    Clock(log).append(self._last_ms, size)
                except OSError as error:
                    # The size is recorded once there is room again.
                    if error.errno not in _FULL:
                        raise
                else:
                    self._sizes[log] = size

    def _cut(self, log: Path, size: int) -> None:
        limit, file = self._limits.get(log, size), LogFile(log)
        if size <= limit or file.kept() <= limit:
            return
        try:
            file.cut(limit - limit // 4)
        except OSError as error:
            self._limits.clear()
            log_line(f"cannot limit the size of logs: {error}")

    def _grown(self) -> Iterable[Path]:
        """Return the logs that have grown according to the kernel, or all of them if its queue was full."""
        events = {(watch, mask) for watch, mask, _ in self._inotify.events()}
        if any(mask & OVERFLOW for _, mask in events):
            return self._sizes
        return [*self._unwatched, *(self._logs[watch] for watch, _ in events if watch in self._logs)]


# Interval for checking a full disk, in seconds.
_PAUSE_S = 1.0
# Timeout for an answer of tmux, and the pause before a retry, in seconds.
_ANSWER_S, _RETRY_S = 2.0, 5.0


class RunLogs(LogClock):
    """The logs of `run`, noted by `loop`; after a full disk it opens the pipes from the panes again."""

    def __init__(self, run: Run, loop: Loop) -> None:
        planned = run.plan().processes
        super().__init__([run.process_dir(one.slot) / "log" for one in planned], [one.log_bytes for one in planned])
        self._run, self._loop, self._is_full = run, loop, False
        loop.watch(self.descriptor, self.note)

    def note(self) -> None:
        """Record growth, and wait for room if that filled the disk."""
        super().note()
        if not self._is_full and full_disk(self._run.folder):
            self._is_full = True
            self._loop.later(_PAUSE_S, self._look)

    def _look(self) -> None:
        if full_disk(self._run.folder):
            self._loop.later(_PAUSE_S, self._look)
            return
        with_terminal = {process.slot for process in self._run.plan().processes if process.tty}
        try:
            for pane in tmux_client.list_panes(self._run.socket, timeout_s=_ANSWER_S):
                if pane.slot in with_terminal and not pane.is_dead and not pane.is_piped:
                    command = log_pipe(str(self._run.process_dir(pane.slot)))
                    tmux_client.pipe(self._run.socket, pane.id, command, _ANSWER_S)
            self._is_full = False
        except SymphError as error:
            log_line(f"cannot write logs yet: {error}")
            self._loop.later(_RETRY_S, self._look)
