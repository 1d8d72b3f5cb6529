"""`read_lines` merges the logs of a run here by time, and follows them over restarts and new runs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from symphony_charts.backend.status import LogLine, LogQuery
from symphony_charts.errors import NotFound
from symphony_charts.local.runs import Run, find_run, runs_of
from symphony_charts.local.status import path_of
from symphony_charts.local.supervisor.log_clock import stamped_lines
from symphony_charts.system.inotify import Changes

__all__ = ["read_lines"]

# How long to wait for a new run after the end of one: `symph up --force` begins it at once.
_NEXT_RUN_S = 0.1


def read_lines(name: str, query: LogQuery) -> Iterator[LogLine]:
    """The lines of the newest run (`previous`: of the one before it)."""
    run = find_run(name)
    if query.previous:
        before = [other for other in runs_of(name) if other.run_id < run.run_id]
        if not before:
            raise NotFound(f'experiment "{name}" has had no run before this one')
        run = before[-1]
    return _lines(run, query)


def _lines(run: Run, query: LogQuery) -> Iterator[LogLine]:
    reader = _Reader(run, query)
    first = [line for line in reader.read(partial=not query.follow) if query.wants(line)]
    yield from first[-query.tail :] if query.tail > 0 else first if query.tail else []
    while query.follow and not query.previous:
        with Changes([*reader.logs, run.folder, run.folder.parent]) as watched:
            yield from (line for line in _until_over(reader, watched, query) if query.wants(line))
        newer = _newer(run)
        if newer is None or _is_past(query):
            return
        run, reader = newer, _Reader(newer, query)


def _until_over(reader: _Reader, watched: Changes, query: LogQuery) -> Iterator[LogLine]:
    """The lines as they come until the run is over."""
    while True:
        is_over = not reader.run.is_active or _is_past(query)
        yield from reader.read(partial=is_over)
        if is_over:
            return
        left = 30.0 if query.until is None else min(30.0, max(0.0, query.until - time.time()))
        watched.wait(left)


def _newer(run: Run) -> Run | None:
    """The run after this one, which may be on its way."""
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
    """The logs of a run from where they were last read."""

    def __init__(self, run: Run, query: LogQuery) -> None:
        self.run = run
        items = run.state()["processes"]
        self._names = {item["slot"]: path_of(item) for item in items}
        chosen = [slot for slot, name in self._names.items() if not query.instances or name in query.instances]
        self._offsets: dict[int, int] = dict.fromkeys(chosen, 0)

    @property
    def logs(self) -> Sequence[Path]:
        """The log files."""
        return [self.run.process_dir(slot) / "log" for slot in self._offsets]

    def read(self, *, partial: bool) -> list[LogLine]:
        """What is new, by time; a last line without its end waits unless `partial`."""
        lines: list[LogLine] = []
        for slot, start in self._offsets.items():
            log = self.run.process_dir(slot) / "log"
            if not log.exists() or log.stat().st_size == start:
                continue
            for offset, moment, text in stamped_lines(log, start, keep_ends=True):
                if not partial and not text.endswith("\n"):
                    break
                self._offsets[slot] = offset
                lines.append(LogLine(time=moment, process=self._names[slot], text=text))
        return sorted(lines, key=lambda line: line.time)


def _is_past(query: LogQuery) -> bool:
    return query.until is not None and time.time() > query.until
