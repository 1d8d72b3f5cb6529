"""Growth times are recorded only for logs that grew, and a storm of lines in one does not slow the others."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from symphony_charts.local.logs import Clock, LogFile
from symphony_charts.local.supervisor.logs import LogClock
from symphony_charts.system.inotify import Inotify


def _logs(folder: Path, count: int) -> list[Path]:
    logs = [folder / str(number) / "log" for number in range(count)]
    for log in logs:
        log.parent.mkdir()
        log.write_bytes(b"")
    return logs


def _append(log: Path, text: bytes) -> None:
    with log.open("ab") as file:
        file.write(text)


def rows(log: Path) -> list[tuple[int, int]]:
    """Return the recorded times and sizes of a log."""
    clock = Clock(log)
    return [clock[number] for number in range(len(clock))]


def sizes(log: Path) -> list[int]:
    return [size for _, size in rows(log)]


def test_the_logs_that_grew_are_noted_and_no_others(tmp_path: Path) -> None:
    logs = _logs(tmp_path, 5)
    clock = LogClock(logs)
    _append(logs[3], b"three\n")
    _append(logs[3], b"and more\n")
    clock.note()
    _append(logs[1], b"two\n")
    clock.note()
    assert [sizes(log) for log in logs] == [[], [4], [], [15], []]


def test_what_was_written_before_the_clock_is_noted(tmp_path: Path) -> None:
    logs = _logs(tmp_path, 2)
    _append(logs[1], b"early\n")
    LogClock(logs)
    assert sizes(logs[1]) == [6]


def test_a_log_that_the_kernel_does_not_watch_is_noted_with_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs, add = _logs(tmp_path, 2), Inotify.add

    def limited(self: Inotify, path: Path, mask: int) -> int:
        if path == logs[1]:
            raise OSError(errno.ENOSPC, "inotify limit")
        return add(self, path, mask)

    monkeypatch.setattr(Inotify, "add", limited)
    clock = LogClock(logs)
    for log in logs:
        _append(log, b"seen\n")
    clock.note()
    assert [sizes(log) for log in logs] == [[5], [5]]


def test_after_too_many_events_every_log_is_looked_at(tmp_path: Path) -> None:
    logs = _logs(tmp_path, 3)
    clock = LogClock(logs)
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    files = [log.open("ab", buffering=0) for log in logs[:2]]
    for number in range(most + 10):
        # Equal events in a row are one; these alternate.
        files[number % 2].write(b".")
    files[0].close()
    files[1].close()
    _append(logs[2], b"not told\n")
    clock.note()
    assert sizes(logs[2]) == [9]


def test_the_index_is_its_owners_alone_and_never_goes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (log,) = _logs(tmp_path, 1)
    moments = iter([5000.0, 4000.0, 6000.0])
    monkeypatch.setattr("symphony_charts.local.supervisor.logs.time.time", lambda: next(moments))
    _append(log, b"one\n")
    clock = LogClock([log])
    _append(log, b"two\n")
    clock.note()
    assert rows(log) == [(5000000, 4), (5000000, 8)]
    assert log.with_name("log.idx").stat().st_mode & 0o777 == 0o600
    _append(log, b"three\n")
    assert LogClock([log])._last_ms == 6000000


def test_a_log_past_its_limit_loses_whole_lines_of_its_beginning_and_no_other(tmp_path: Path) -> None:
    (log,) = _logs(tmp_path, 1)
    clock = LogClock([log], [1 << 20])
    for number in range(60):
        _append(log, b"".join(b"%d of a line with something in it\n" % (number * 1000 + i) for i in range(1000)))
        clock.note()
    texts = [int(text.split()[0]) for _, _, text in LogFile(log).lines()]
    assert texts == list(range(texts[0], 60000))
    kept = log.stat().st_blocks * 512
    assert (3 << 18) - 4096 <= kept < (1 << 20) + 64 * 1024 < log.stat().st_size
    assert LogFile(log).kept() <= kept


def test_a_follower_gets_every_line_once_while_the_beginning_goes(tmp_path: Path) -> None:
    (log,) = _logs(tmp_path, 1)
    clock, file, place, seen = LogClock([log], [1 << 16]), LogFile(log), 0, []
    for number in range(40):
        _append(log, b"".join(b"%d of a line with something in it\n" % (number * 1000 + i) for i in range(1000)))
        clock.note()
        new = list(file.lines(place, file.end_of_lines()))
        place = new[-1][0]
        seen += [int(text.split()[0]) for _, _, text in new]
    assert seen == list(range(40000))


def test_a_reader_that_is_overtaken_goes_on_where_lines_are_kept(tmp_path: Path) -> None:
    (log,) = _logs(tmp_path, 1)
    _append(log, b"".join(b"%d of a line with something in it\n" % i for i in range(50000)))
    lines = LogFile(log).lines()
    first = [int(next(lines)[2].split()[0]) for _ in range(10)]
    LogFile(log).cut(1 << 16)
    rest = [int(text.split()[0]) for _, _, text in lines]
    assert first == list(range(10))
    assert rest[-1] == 49999
    # Lines read together with the first ones follow as well; then whole lines, in order, without duplicates.
    assert rest == sorted(set(rest))
    assert len(rest) < 5000
