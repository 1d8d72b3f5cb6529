"""`LogClock` notes when the logs of processes grow; the logs themselves are the raw bytes as they came.

The log itself is written by the pane's pipe or by the process, so no byte depends on us. `LogClock` is told by the
kernel (inotify) that logs have grown and notes time and size in ``log.idx`` (lines of milliseconds and bytes).
"""

from __future__ import annotations

import bisect
import ctypes
import os
import struct
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

__all__ = ["LogClock", "read_index", "stamped_lines"]

_IN_MODIFY = 0x2
# struct inotify_event: watch, mask, cookie, length of the name (inotify(7)); a full queue is told as watch -1.
_EVENT = struct.Struct("iIII")
_OVERFLOW = -1
_LIBC = ctypes.CDLL(None, use_errno=True)


class LogClock:
    """Notes when each of `logs` grew. `descriptor` becomes readable when there is something to `note`."""

    def __init__(self, logs: Sequence[Path]) -> None:
        self.descriptor: int = _LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.descriptor < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")
        self._logs: dict[int, Path] = {}
        self._sizes: dict[Path, int] = {}
        # Those the kernel says nothing of, since it may watch no more; they are looked at whenever another has grown.
        self._unwatched: list[Path] = []
        for log in logs:
            log.touch(mode=0o600)
            watch = _LIBC.inotify_add_watch(self.descriptor, os.fsencode(log), _IN_MODIFY)
            if watch >= 0:
                self._logs[watch] = log
            else:
                self._unwatched.append(log)
            self._sizes[log] = _last_size(log)
        self._note(self._sizes)

    def note(self) -> None:
        """Write down time and size of every log that has grown since."""
        self._note(self._grown())

    def _note(self, logs: Iterable[Path]) -> None:
        now_ms = int(time.time() * 1000)
        for log in logs:
            size = log.stat().st_size
            if size > self._sizes[log]:
                with log.with_name("log.idx").open("a", encoding="ascii") as index:
                    index.write(f"{now_ms} {size}\n")
                self._sizes[log] = size

    def _grown(self) -> Iterable[Path]:
        """The logs that the kernel has named since, or all of them when they were too many for it."""
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


def read_index(log: Path) -> tuple[list[int], list[int]]:
    """The sizes that `log` had and the times in milliseconds at which it had them, both ascending."""
    try:
        rows = [line.split() for line in log.with_name("log.idx").read_text(encoding="ascii").splitlines()]
    except FileNotFoundError:
        rows = []
    good = [(int(row[1]), int(row[0])) for row in rows if len(row) == 2]
    return [size for size, _ in good], [moment for _, moment in good]


def stamped_lines(log: Path, start: int = 0, *, keep_ends: bool = False) -> Iterator[tuple[int, float, str]]:
    """The lines of `log` from byte `start`: offset after the line, seconds since 1970, text without its line end.

    With `keep_ends` each keeps its line feed; the carriage return that a terminal put before it is dropped.
    """
    sizes, times = read_index(log)
    try:
        data = log.read_bytes()[start:]
    except FileNotFoundError:
        return
    offset = start
    for line in _lines(data):
        row = bisect.bisect_right(sizes, offset)
        moment = times[row] if row < len(times) else int(time.time() * 1000)
        offset += len(line)
        text = line.decode("utf-8", "replace")
        end = "\n" if keep_ends and text.endswith("\n") else ""
        yield (
            offset,
            moment / 1000,
            (text.removesuffix("\n").removesuffix("\r") if keep_ends else text.rstrip("\r\n")) + end,
        )


def _lines(data: bytes) -> list[bytes]:
    """Split at line feeds only: a lone carriage return is a progress bar, not a new line."""
    return [part + b"\n" for part in data.split(b"\n")[:-1]] + (
        [data.rsplit(b"\n", 1)[-1]] if data[-1:] != b"\n" else []
    )


def _last_size(log: Path) -> int:
    sizes, _ = read_index(log)
    return sizes[-1] if sizes else 0
