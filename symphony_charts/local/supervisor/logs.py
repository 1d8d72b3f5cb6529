"""Record the growth of process logs, cut long ones, and reopen the pipes that a full disk has closed.

A log holds the raw bytes. The kernel (inotify) reports growth, and time and size go to ``log.idx`` (lines of
milliseconds and bytes). The program that writes a log exits on a write error, and tmux then writes nothing more to the
log.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from symphony_charts.errors import SymphError
from symphony_charts.local import tmux_client
from symphony_charts.local.logs import LogFile
from symphony_charts.local.plan.records import log_pipe
from symphony_charts.local.runs import Run
from symphony_charts.local.supervisor.events import Loop
from symphony_charts.local.supervisor.launcher import log_line
from symphony_charts.system.files import full_disk

_IN_MODIFY = 0x2
# struct inotify_event: watch, mask, cookie, length of the name (inotify(7)); a full queue is reported as watch -1.
_EVENT = struct.Struct("iIII")
_OVERFLOW = -1
if sys.platform != "win32":
    _LIBC = ctypes.CDLL(None, use_errno=True)
_FULL = (errno.ENOSPC, errno.EDQUOT)


class LogClock:
    """Records when each of `logs` grew. `descriptor` becomes readable when there is something to `note`.

    `limits` has the maximum number of bytes per log, of which at least three quarters are kept (0: unlimited).
    """

    def __init__(self, logs: Sequence[Path], limits: Sequence[int] = ()) -> None:
        self.descriptor: int = _LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.descriptor < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")
        self._logs: dict[int, Path] = {}
        self._sizes: dict[Path, int] = {}
        self._limits = {log: limit for log, limit in zip(logs, limits, strict=False) if limit}
        self._last_ms = 0
        # Logs without a watch, because the kernel's limit is reached; checked whenever another log has grown.
        self._unwatched: list[Path] = []
        for log in logs:
            log.touch(mode=0o600)
            watch = _LIBC.inotify_add_watch(self.descriptor, os.fsencode(log), _IN_MODIFY)
            if watch >= 0:
                self._logs[watch] = log
            else:
                self._unwatched.append(log)
            moment, self._sizes[log] = _last_row(log)
            self._last_ms = max(self._last_ms, moment)
        self._note(self._sizes)

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
                    _append(log.with_name("log.idx"), f"{self._last_ms} {size}\n")
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
            log_line(f"logs are not held to their limits: {error}")

    def _grown(self) -> Iterable[Path]:
        """Return the logs that have grown according to the kernel, or all of them if its queue was full."""
        watches: set[int] = set()
        try:
            while events := os.read(self.descriptor, 1 << 16):
                # Events of watched files, unlike folders, have no name: each has the same length.
                watches.update(watch for watch, *_ in _EVENT.iter_unpack(events))
        except BlockingIOError:
            pass
        if _OVERFLOW in watches:
            return self._sizes
        return [*self._unwatched, *(self._logs[watch] for watch in watches)]


def _last_row(log: Path) -> tuple[int, int]:
    try:
        with log.with_name("log.idx").open("rb") as index:
            index.seek(max(0, index.seek(0, os.SEEK_END) - 4096))
            rows = [line.split() for line in index.read().splitlines(keepends=True) if line.endswith(b"\n")]
    except FileNotFoundError:
        rows = []
    good = [(int(row[0]), int(row[1])) for row in rows if len(row) == 2 and all(map(bytes.isdigit, row))]
    return good[-1] if good else (0, 0)


def _append(path: Path, text: str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)


# Interval for checking a full disk, in seconds.
_PAUSE_S = 1.0
# Timeout for an answer of tmux, and the pause before a retry, in seconds.
_ANSWER_S, _RETRY_S = 2.0, 5.0


class LogPipes:
    """The pipes from panes to logs of `run`; `clock` records their growth."""

    def __init__(self, run: Run, loop: Loop, clock: LogClock) -> None:
        self._run, self._loop, self._clock = run, loop, clock
        self._is_full = False

    def note(self) -> None:
        """Record growth, and wait for room if that filled the disk."""
        self._clock.note()
        if not self._is_full and full_disk(self._run.folder):
            self._is_full = True
            self._loop.later(_PAUSE_S, self._look)

    def _look(self) -> None:
        if full_disk(self._run.folder):
            self._loop.later(_PAUSE_S, self._look)
            return
        self._is_full = False
        with_terminal = {process.slot for process in self._run.plan().processes if process.tty}
        try:
            for slot, pane in tmux_client.panes_without_pipe(self._run.socket, timeout_s=_ANSWER_S):
                if slot in with_terminal:
                    tmux_client.pipe(self._run.socket, pane, log_pipe(str(self._run.process_dir(slot))), _ANSWER_S)
        except SymphError as error:
            log_line(f"logs are not written yet: {error}")
            self._is_full = True
            self._loop.later(_RETRY_S, self._look)
