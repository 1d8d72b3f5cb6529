"""`LogClock` notes when the logs of processes grow, and cuts their beginnings when they have grown too long.

The log itself holds the raw bytes as they came, written by the pane's pipe or by the process, so no byte depends on us.
`LogClock` is told by the kernel (inotify) that logs have grown and notes time and size in ``log.idx`` (lines of
milliseconds and bytes), which `log_file` reads.
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

from symphony_charts.local.log_file import LogFile
from symphony_charts.local.supervisor.startup import log_line

__all__ = ["LogClock"]

_IN_MODIFY = 0x2
# struct inotify_event: watch, mask, cookie, length of the name (inotify(7)); a full queue is told as watch -1.
_EVENT = struct.Struct("iIII")
_OVERFLOW = -1
if sys.platform != "win32":
    _LIBC = ctypes.CDLL(None, use_errno=True)
_FULL = (errno.ENOSPC, errno.EDQUOT)


class LogClock:
    """Records when each of `logs` grew. `descriptor` becomes readable when there is something to `note`.

    `limits` says for each log how many bytes of it are kept at most, of which at least three quarters are (0: all are).
    """

    def __init__(self, logs: Sequence[Path], limits: Sequence[int] = ()) -> None:
        self.descriptor: int = _LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.descriptor < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")
        self._logs: dict[int, Path] = {}
        self._sizes: dict[Path, int] = {}
        self._limits = {log: limit for log, limit in zip(logs, limits, strict=False) if limit}
        self._last_ms = 0
        # Those the kernel says nothing of, since it may watch no more; they are looked at whenever another has grown.
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
        # Those who look for a time in an index rely on its order, whatever becomes of this machine's clock.
        self._last_ms = max(self._last_ms, int(time.time() * 1000))
        for log in logs:
            size = log.stat().st_size
            if size > self._sizes[log]:
                self._cut(log, size)
                try:
                    _append(log.with_name("log.idx"), f"{self._last_ms} {size}\n")
                except OSError as error:
                    # It is noted as soon as there is room again.
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
        """Return the logs that have grown by the kernel, or all of them if its queue was full."""
        watches: set[int] = set()
        try:
            while events := os.read(self.descriptor, 1 << 16):
                # Watched files, unlike folders, have events without a name: each has the same length.
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
