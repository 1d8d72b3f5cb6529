"""Read the logs of a run: one log from either end, its last lines, or all merged by time and followed.

Each log has an index, ``log.idx``, with the time of each size (`Clock`). The size limit may have removed the beginning
of both: that leaves a hole, which takes no disk space and reads as zeros.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import heapq
import io
import math
import os
import struct
import sys
import time
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path

from symphony_charts.backend.status import LogLine, LogQuery
from symphony_charts.errors import NotFound, ToolFailed
from symphony_charts.formats.printable import size as size_text
from symphony_charts.local.runs import LIVE, Run, find_run, runs_of
from symphony_charts.system.inotify import Changes

# The time when one or several lines were written, in seconds since 1970, and their text with its line feeds.
Stamped = tuple[float, str]
# Read size in bytes: it fits into the processor's cache. Files are not kept open, because hundreds of logs are read
# side by side.
_BLOCK = 1 << 16
_SMALL_BLOCK = 1 << 12
_KEEP_SIZE, _PUNCH_HOLE = 1, 2  # fallocate(2)
if sys.platform != "win32":
    _LIBC = ctypes.CDLL(None, use_errno=True)


class _Bytes:
    """A file that is opened for each access, and empty if it is missing."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def size(self) -> int:
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def read(self, place: int, size: int) -> bytes:
        with self._opened() as file:
            return os.pread(file, size, place) if file >= 0 else b""

    def kept_from(self, place: int = 0) -> int:
        """Return the first place from `place` on that was not cut away."""
        with self._opened() as file:
            # A hole reads as zeros. Test that first: some file systems flush all data before they report the end of a
            # hole.
            if file < 0 or os.pread(file, 1, place) != b"\0":
                return place
            try:
                kept = os.lseek(file, 0, os.SEEK_DATA)
            except OSError as error:
                # No data follows, or the file system does not support holes.
                return os.fstat(file).st_size if error.errno == errno.ENXIO else place
            # In the first block that is kept, zeros replace what was cut away.
            block = os.pread(file, os.fstat(file).st_blksize, kept) if kept else b""
            return place if place >= kept + len(block) else max(place, kept + len(block) - len(block.lstrip(b"\0")))

    def line_start(self, place: int, first: int) -> int:
        """Return the start of the first line at or after `place`, at most the end; a line starts at `first`."""
        if place <= first:
            return first
        place -= 1
        with self._opened() as file:
            while file >= 0 and (block := os.pread(file, _SMALL_BLOCK, place)):
                found = block.find(b"\n")
                if found >= 0:
                    return place + found + 1
                place += len(block)
        return place

    def free(self, place: int) -> None:
        """Free the whole file system blocks before `place`. Raises OSError if the file system does not support it."""
        if place > 0:
            file = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
            try:
                if _LIBC.fallocate(file, _PUNCH_HOLE | _KEEP_SIZE, ctypes.c_int64(0), ctypes.c_int64(place)):
                    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(self.path))
            finally:
                os.close(file)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int]:
        try:
            file = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            yield -1
            return
        try:
            yield file
        finally:
            os.close(file)


class LogFile(_Bytes):
    """The log at `path`, which may grow, or be cut at its beginning; a missing log is empty.

    `lost` is the number of bytes that were cut off while they were still to be read.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.lost = 0

    def lines(self, start: int | None = None, end: int | None = None) -> Iterator[Stamped]:
        """Yield the lines between two line starts (default: all so far, with an unfinished last line).

        Drops the carriage return that a terminal puts before a line feed; a lone one is a progress bar, not a new line.
        """
        # Unlike `splitlines` this splits at line feeds alone.
        yield from ((moment, line) for moment, text in self.blocks(start, end) for line in io.StringIO(text))

    def blocks(self, start: int | None = None, end: int | None = None, *, is_dated: bool = True) -> Iterator[Stamped]:
        """Yield the same lines, together if they are in the same read and were written at one time.

        Without `is_dated` the times do not separate lines.
        """
        clock, now = Clock(self.path), self.size()
        end = now if end is None else min(end, now)
        place = reached = self.kept_from() if start is None else start
        # The known part of the line that begins at `place`.
        parts: list[bytes] = []
        while reached < end and (data := self.read(reached, min(_BLOCK, end - reached))):
            if data[0] == 0 and (kept := self.kept_from(reached)) > reached:
                # The log was cut faster than it is read.
                self.lost += min(kept, end) - place
                place, reached, parts = kept, kept, []
                continue
            reached += len(data)
            whole = data.rfind(b"\n") + 1
            if whole:
                lines = b"".join([*parts, data[:whole]])
                yield from _dated(clock, place, lines) if is_dated else [(clock.row_of(place)[0], _text(lines))]
                place, parts = reached - len(data) + whole, []
            parts.append(data[whole:])
        if last := b"".join(parts):
            yield clock.row_of(place)[0], _text(last)

    def kept(self) -> int:
        return self.size() - self.kept_from()

    def cut(self, keep: int) -> None:
        """Keep the last `keep` bytes, from the start of a line in them, and free the disk space before.

        Works under concurrent writers and readers. Raises as `free`.
        """
        place = self.line_start(self.size() - keep, 0)
        self.free(place)
        Clock(self.path).cut(place)

    def start_since(self, moment: float) -> int:
        """Return the start of the first line at or after that moment."""
        clock = Clock(self.path)
        count = bisect_left(clock, moment * 1000, key=itemgetter(0))
        return self.line_start(clock[count - 1][1] if count else 0, self.kept_from())

    def end_of_lines(self, first: int = 0) -> int:
        """Return the end of the last complete line that ends after `first`, else `first`."""
        end, first = self.size(), max(first, self.kept_from())
        while end > first:
            begin = max(first, end - _BLOCK)
            last = self.read(begin, end - begin).rfind(b"\n")
            if last >= 0:
                return begin + last + 1
            end = begin
        return first


class Clock(_Bytes):
    """The index of a log: rows of milliseconds and the size of the log at that time, both ascending.

    Rows of a part that was cut away are zeros. A full disk can leave a part of a row, which the next one overwrites.
    """

    _ROW = struct.Struct("<QQ")

    def __init__(self, log: Path) -> None:
        super().__init__(log.with_name("log.idx"))
        self._next = -1
        self._rows: deque[tuple[int, int]] = deque()

    def __len__(self) -> int:
        return self.size() // self._ROW.size

    def __getitem__(self, number: int) -> tuple[int, int]:
        milliseconds, size = self._ROW.unpack(self.read(number * self._ROW.size, self._ROW.size))
        return milliseconds, size

    def append(self, milliseconds: int, size: int) -> None:
        """Add a row. Raises OSError."""
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.pwrite(file, self._ROW.pack(milliseconds, size), len(self) * self._ROW.size)
        finally:
            os.close(file)

    def row_of(self, place: int) -> tuple[float, int]:
        """Return the write time of the byte at `place`, and the end of the bytes of that time; places must ascend.

        Without a row for it these are now, and 0.
        """
        if self._next < 0:
            self._next = bisect_right(self, place, key=itemgetter(1))
        while True:
            while self._rows and self._rows[0][1] <= place:
                self._rows.popleft()
            if self._rows:
                return self._rows[0][0] / 1000, self._rows[0][1]
            block = self.read(self._next * self._ROW.size, _SMALL_BLOCK)
            count = len(block) // self._ROW.size
            if not count:
                return int(time.time() * 1000) / 1000, 0
            self._next += count
            self._rows.extend(self._ROW.iter_unpack(block[: count * self._ROW.size]))

    def cut(self, place: int) -> None:
        """Drop the rows for the part of the log before `place`."""
        self.free(bisect_right(self, place, key=itemgetter(1)) * self._ROW.size)


def _dated(clock: Clock, place: int, lines: bytes) -> Iterator[Stamped]:
    """Yield the `lines` at `place` in parts that were written at one time."""
    begin = 0
    while begin < len(lines):
        moment, until = clock.row_of(place + begin)
        # A line has the time of its first byte.
        end = lines.find(b"\n", until - 1 - place) + 1 if place < until < place + len(lines) else len(lines)
        yield moment, _text(lines[begin:end])
        begin = end


def _text(lines: bytes) -> str:
    # The search for one byte takes a hundredth of the time of a replacement.
    if b"\r" in lines:
        lines = lines.replace(b"\r\n", b"\n").removesuffix(b"\r")
    return lines.decode("utf-8", "replace")


# Time to wait for a new run after the end of one: `symph up --force` starts it at once.
_NEXT_RUN_S = 0.1


def read_lines(name: str, query: LogQuery) -> Iterator[LogLine]:
    """Yield the lines of the newest run (`previous`: of the one before it).

    The size limit of a log may cut off lines while they are read: then a line reports the number of missing bytes.
    """
    run = find_run(name)
    if query.previous:
        before = [other for other in runs_of(name) if other.run_id < run.run_id]
        if not before:
            raise NotFound(f'experiment "{name}" has no earlier run')
        run = before[-1]
    found = _blocks(run, query)
    if query.in_blocks:
        return found
    return (LogLine(time=one.time, process=one.process, text=line) for one in found for line in io.StringIO(one.text))


def _blocks(run: Run, query: LogQuery) -> Iterator[LogLine]:
    reader = _Reader(run, query)
    yield from reader.first()
    while query.follow and not query.previous:
        is_over = False
        with Changes([*reader.paths, run.folder, run.folder.parent]) as watched:
            while not is_over:
                is_over = _is_over(run, query) or _is_past(query)
                yield from reader.news(is_last=is_over)
                left = 30.0 if query.until is None else min(30.0, max(0.0, query.until - time.time()))
                watched.wait(0.0 if is_over else left)
        newer = None if query.is_one_run else _newer(run)
        if newer is None or _is_past(query):
            return
        run, reader = newer, _Reader(newer, query)


def _is_over(run: Run, query: LogQuery) -> bool:
    """Return True if the run has ended, and none of the services that go on is asked for by name."""
    with contextlib.suppress(NotFound, ToolFailed):
        state = run.state()
        if state.has_result and state.is_settled:
            going = {process.path for process in state.processes if process.phase in ("running", "backoff")}
            return going.isdisjoint(query.instances)
        return state.phase not in LIVE or run.location.verdict == "lost"
    return not run.is_active


def _newer(run: Run) -> Run | None:
    deadline = time.monotonic() + _NEXT_RUN_S
    while True:
        later = [other for other in runs_of(run.experiment) if other.run_id > run.run_id]
        later = [other for other in later if (other.folder / "state.json").exists()]
        if later or time.monotonic() > deadline:
            return later[-1] if later else None
        time.sleep(0.02)


class _Reader:
    """The logs of a run, read from the last positions."""

    def __init__(self, run: Run, query: LogQuery) -> None:
        self._query = query
        wanted = query.instances
        self._names = {one.slot: one.path for one in run.state().processes if one.path in wanted or not wanted}
        self._logs = {slot: LogFile(run.process_dir(slot) / "log") for slot in self._names}
        self.paths = [log.path for log in self._logs.values()]
        # The end of the lines that were read, and of the part in which line ends were searched.
        self._places, self._searched = dict.fromkeys(self._names, 0), dict.fromkeys(self._names, 0)
        # Lines of several processes are merged by their times.
        is_alone = query.in_blocks and len(self._names) == 1 and query.since is None and query.until is None
        self._is_dated = not is_alone

    def first(self) -> Iterator[LogLine]:
        """Yield the matching lines so far; while following, only complete ones."""
        query = self._query
        parts: list[Iterator[LogLine]] = []
        for slot, log in self._logs.items():
            start = log.kept_from() if query.since is None else log.start_since(query.since)
            self._places[slot] = self._searched[slot] = end = log.end_of_lines() if query.follow else log.size()
            if query.until is not None:
                end = min(end, log.start_since(math.nextafter(query.until, math.inf)))
            if query.tail >= 0:
                parts.append(self._last(slot, start, end))
            else:
                parts.append(self._wanted(slot, log.blocks(start, end, is_dated=self._is_dated)))
        lines = heapq.merge(*parts, key=lambda line: line.time)
        yield from lines if query.tail < 0 else deque(lines, maxlen=query.tail)

    def news(self, *, is_last: bool) -> Iterator[LogLine]:
        """Yield the new matching lines; an unfinished last line waits unless `is_last`."""
        parts = [self._wanted(slot, self._new(slot, is_last=is_last)) for slot in self._logs]
        yield from heapq.merge(*parts, key=lambda line: line.time)

    def _new(self, slot: int, *, is_last: bool) -> Iterator[Stamped]:
        log, size = self._logs[slot], self._logs[slot].size()
        # Do not read a growing line again each time: a progress bar may grow for days.
        end = size if is_last else log.end_of_lines(self._searched[slot])
        is_unfinished = end == self._searched[slot] and not is_last
        self._searched[slot] = size
        if not is_unfinished:
            place, self._places[slot] = self._places[slot], end
            yield from log.blocks(place, end, is_dated=self._is_dated)

    def _last(self, slot: int, start: int, end: int) -> Iterator[LogLine]:
        """Yield the last matching lines, as many as the query wants or more."""
        log, size = self._logs[slot], _SMALL_BLOCK
        while True:
            begin = log.line_start(end - size, start)
            lines = list(self._wanted(slot, log.lines(begin, end)))
            if begin <= start or len(lines) >= self._query.tail:
                return iter(lines)
            size *= 4

    def _wanted(self, slot: int, blocks: Iterator[Stamped]) -> Iterator[LogLine]:
        query, name, log = self._query, self._names[slot], self._logs[slot]
        for moment, text in blocks:
            yield from self._loss(name, log, moment)
            if query.is_in_time(moment) and (wanted := query.matching(text)):
                yield LogLine(time=moment, process=name, text=wanted)
        yield from self._loss(name, log, time.time())

    def _loss(self, name: str, log: LogFile, moment: float) -> Iterator[LogLine]:
        if log.lost:
            lost, log.lost = log.lost, 0
            text = f"... {size_text(lost)} of {name} are missing: its log reached its size limit\n"
            yield LogLine(time=moment, process=name, text=text)


def _is_past(query: LogQuery) -> bool:
    return query.until is not None and time.time() > query.until


# A progress bar may have grown for days: only the end of a log is read.
_END_BYTES = 4096


def tail_of(log: Path, count: int) -> list[str]:
    """Return the last `count` lines that are not blank; none without a log."""
    text = _end_of(log)
    # Of a progress bar only its last state.
    return [line.rstrip().rpartition("\r")[2] for line in text.split("\n") if line.strip()][-count:]


def unfinished_line(log: Path) -> str:
    """Return the text behind the last line feed."""
    return _end_of(log).rpartition("\n")[2]


def _end_of(log: Path) -> str:
    with contextlib.suppress(OSError):
        file = LogFile(log)
        return file.read(max(0, file.size() - _END_BYTES), _END_BYTES).decode("utf-8", "replace")
    return ""
