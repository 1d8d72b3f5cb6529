"""When logs grew is noted of those that did, and a storm of lines in one costs nothing for the others."""

from __future__ import annotations

from pathlib import Path

from symphony_charts.local.supervisor import log_clock
from symphony_charts.local.supervisor.log_clock import LogClock, read_index


def _logs(folder: Path, count: int) -> list[Path]:
    logs = [folder / str(number) / "log" for number in range(count)]
    for log in logs:
        log.parent.mkdir()
        log.write_bytes(b"")
    return logs


def _append(log: Path, text: bytes) -> None:
    with log.open("ab") as file:
        file.write(text)


def test_the_logs_that_grew_are_noted_and_no_others(tmp_path: Path) -> None:
    logs = _logs(tmp_path, 5)
    clock = LogClock(logs)
    _append(logs[1], b"one\n")
    _append(logs[3], b"three\n")
    _append(logs[3], b"and more\n")
    assert {log.parent.name for log in clock._grown()} == {"1", "3"}
    _append(logs[1], b"two\n")
    _append(logs[3], b".")
    clock.note()
    assert [read_index(log)[0] for log in logs] == [[], [8], [], [16], []]


def test_what_was_written_before_the_clock_is_noted(tmp_path: Path) -> None:
    logs = _logs(tmp_path, 2)
    _append(logs[1], b"early\n")
    LogClock(logs)
    assert read_index(logs[1])[0] == [6]


def test_a_log_that_the_kernel_does_not_watch_is_noted_with_the_others(tmp_path: Path) -> None:
    logs = _logs(tmp_path, 3)
    clock = LogClock(logs)
    watch = next(number for number, log in clock._logs.items() if log == logs[2])
    log_clock._LIBC.inotify_rm_watch(clock.descriptor, watch)
    clock.note()
    clock._unwatched.append(clock._logs.pop(watch))
    _append(logs[2], b"unseen\n")
    _append(logs[0], b"seen\n")
    clock.note()
    assert read_index(logs[2])[0] == [7]


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
    assert read_index(logs[2])[0] == [9]
