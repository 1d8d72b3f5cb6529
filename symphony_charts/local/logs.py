"""`read_lines` merges the logs of a run here by time, and follows them over restarts and new runs."""

from __future__ import annotations

import heapq
import math
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

from symphony_charts.backend.status import LogLine, LogQuery
from symphony_charts.errors import NotFound
from symphony_charts.local.log_file import LogFile, Stamped
from symphony_charts.local.runs import Run, find_run, runs_of
from symphony_charts.system.inotify import Changes

__all__ = ["read_lines"]

# How long to wait for a new run after the end of one: `symph up --force` begins it at once.
_NEXT_RUN_S = 0.1


def read_lines(name: str, query: LogQuery) -> Iterator[LogLine]:
    """Yield the lines of the newest run (`previous`: of the one before it)."""
    run = find_run(name)
    if query.previous:
        before = [other for other in runs_of(name) if other.run_id < run.run_id]
        if not before:
            raise NotFound(f'experiment "{name}" has had no run before this one')
        run = before[-1]
    return _lines(run, query)


def _lines(run: Run, query: LogQuery) -> Iterator[LogLine]:
    reader = _Reader(run, query)
    yield from reader.first()
    while query.follow and not query.previous:
        with Changes([*reader.logs, run.folder, run.folder.parent]) as watched:
            yield from _until_over(reader, watched, query)
        newer = None if query.is_one_run else _newer(run)
        if newer is None or _is_past(query):
            return
        run, reader = newer, _Reader(newer, query)


def _until_over(reader: _Reader, watched: Changes, query: LogQuery) -> Iterator[LogLine]:
    while True:
        is_over = not reader.run.is_active or _is_past(query)
        yield from reader.news(partial=is_over)
        if is_over:
            return
        left = 30.0 if query.until is None else min(30.0, max(0.0, query.until - time.time()))
        watched.wait(left)


def _newer(run: Run) -> Run | None:
    deadline = time.monotonic() + _NEXT_RUN_S
    while True:
        later = [
            other
            for other in runs_of(run.experiment)
            if other.run_id > run.run_id and (other.folder / "state.json").exists()
        ]
        if later or time.monotonic() > deadline:
            return later[-1] if later else None
        time.sleep(0.02)


class _Reader:
    """The logs of a run from the places that were read last."""

    def __init__(self, run: Run, query: LogQuery) -> None:
        self.run, self._query = run, query
        names = {process.slot: process.path for process in run.state().processes}
        chosen = [slot for slot, name in names.items() if not query.instances or name in query.instances]
        self._names = {slot: names[slot] for slot in chosen}
        self._logs = {slot: LogFile(run.process_dir(slot) / "log") for slot in chosen}
        self._places: dict[int, int] = dict.fromkeys(chosen, 0)
        self._searched: dict[int, int] = {}

    @property
    def logs(self) -> Sequence[Path]:
        return [log.path for log in self._logs.values()]

    def first(self) -> Iterator[LogLine]:
        """Yield the wanted lines so far; a followed one must have its end."""
        query = self._query
        parts: list[Iterator[LogLine]] = []
        for slot, log in self._logs.items():
            start = 0 if query.since is None else log.start_since(query.since)
            self._places[slot] = end = log.end_of_lines() if query.follow else log.size()
            if query.until is not None:
                end = min(end, log.start_since(math.nextafter(query.until, math.inf)))
            parts.append(self._last(slot, start, end) if query.tail >= 0 else self._wanted(slot, log.lines(start, end)))
        lines = heapq.merge(*parts, key=lambda line: line.time)
        yield from lines if query.tail < 0 else deque(lines, maxlen=query.tail)

    def news(self, *, partial: bool) -> Iterator[LogLine]:
        """Yield the wanted lines since; a last line without its end waits unless `partial`."""
        parts = [self._wanted(slot, self._new(slot, partial=partial)) for slot in self._logs]
        yield from heapq.merge(*parts, key=lambda line: line.time)

    def _new(self, slot: int, *, partial: bool) -> Iterator[Stamped]:
        log, place = self._logs[slot], self._places[slot]
        size = log.size()
        if not partial and not log.has_line_end(max(place, self._searched.get(slot, 0))):
            # A line that grows for days, as a progress bar does, is not read again each time.
            self._searched[slot] = size
        elif size > place:
            for line in log.lines(place, partial=partial):
                self._places[slot] = line[0]
                yield line

    def _last(self, slot: int, start: int, end: int) -> Iterator[LogLine]:
        blocks: list[list[LogLine]] = []
        count = 0
        for block in self._logs[slot].blocks_from_end(start, end):
            blocks.append(list(self._wanted(slot, iter(block))))
            count += len(blocks[-1])
            if count >= self._query.tail:
                break
        yield from (line for block in reversed(blocks) for line in block)

    def _wanted(self, slot: int, lines: Iterator[Stamped]) -> Iterator[LogLine]:
        for _, moment, text in lines:
            line = LogLine(time=moment, process=self._names[slot], text=text)
            if self._query.wants(line):
                yield line


def _is_past(query: LogQuery) -> bool:
    return query.until is not None and time.time() > query.until
