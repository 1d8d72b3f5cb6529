"""A log reads the same from either end and from any moment, whatever its content and growth, and keeps its limit."""

from __future__ import annotations

import errno
import re
import tempfile
from itertools import accumulate, islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symphony_charts.backend.status import LogQuery
from symphony_charts.formats.printable import size
from symphony_charts.local.logs import Clock, LogFile, Stamped, read_lines
from symphony_charts.local.machine.machine import plan_here
from symphony_charts.local.supervisor.logs import LogClock
from symphony_charts.spec.data import from_data
from symphony_charts.spec.pods import allocate
from symphony_charts.system.inotify import Inotify
from tests.local.runs import start

LINES = st.lists(st.binary(max_size=12).map(lambda text: text.replace(b"\n", b"").lstrip(b"\0")), max_size=40)
# Bytes added per index row, and the time since the previous row.
STEPS = st.lists(st.tuples(st.integers(1, 200), st.integers(0, 3)), max_size=30)


def written(folder: Path, lines: list[bytes], end: bytes, steps: list[tuple[int, int]], width: int) -> LogFile:
    """Return a log of these lines, repeated to exceed one block, with an index of its growth."""
    content = b"".join(line * width + b"\n" for line in lines) + end
    (folder / "log").write_bytes(content)
    moments = accumulate(later for _, later in steps)
    sizes = accumulate(size * width for size, _ in steps)
    clock = Clock(folder / "log")
    for moment, end_of_row in zip(moments, sizes, strict=True):
        if end_of_row <= len(content):
            clock.append(1000 * moment, end_of_row)
    return LogFile(folder / "log")


def plainly(folder: Path) -> list[Stamped]:
    """Return all lines by a plain full read."""
    clock = Clock(folder / "log")
    rows = [clock[number] for number in range(len(clock))]
    result, place = [], 0
    for line in split(folder / "log"):
        moment = next((ms / 1000 for ms, size in rows if size > place), -1.0)
        place += len(line)
        ending = "\n" if line.endswith(b"\n") else ""
        result.append((moment, line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8", "replace") + ending))
    return result


def split(log: Path) -> list[bytes]:
    """Return the lines of a file with their ends, cut at line feeds alone."""
    *whole, last = log.read_bytes().split(b"\n")
    return [line + b"\n" for line in whole] + ([last] if last else [])


def dated(lines: list[Stamped]) -> list[Stamped]:
    """Return the lines with moment -1 for those without a time in the index, which were written just now."""
    return [(moment if moment < 1e6 else -1.0, text) for moment, text in lines]


@settings(max_examples=50)
@given(lines=LINES, end=st.sampled_from([b"", b"half", b"half\r"]), steps=STEPS, width=st.sampled_from([1, 900]))
def test_it_reads_the_same_from_any_moment(
    lines: list[bytes], end: bytes, steps: list[tuple[int, int]], width: int
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log = written(folder, lines, end, steps, width)
        expected = plainly(folder)
        assert dated(list(log.lines())) == expected
        assert "".join(text for _, text in dated(list(log.blocks()))) == "".join(text for _, text in expected)
        assert log.end_of_lines() == (folder / "log").read_bytes().rfind(b"\n") + 1
        for moment in {0.0, 1.0, *(second for second, _ in expected if second >= 0)}:
            since = [line for line in expected if line[0] < 0 or line[0] >= moment]
            assert dated(list(log.lines(log.start_since(moment)))) == since


def test_a_log_that_is_not_there_is_empty(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "log")
    assert (log.size(), list(log.lines()), log.end_of_lines()) == (0, [], 0)


def test_a_row_that_a_full_disk_has_cut_off_is_overwritten_by_the_next(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"one\ntwo\nthree\n")
    clock = Clock(tmp_path / "log")
    clock.append(1000, 4)
    clock.path.write_bytes(clock.path.read_bytes() + b"half")
    clock.append(3000, 14)
    assert [moment for moment, _ in LogFile(tmp_path / "log").lines()] == [1.0, 3.0, 3.0]


_LINES, _LENGTH = 160_000, 50  # 8 MB


def bytes_read() -> int:
    return int(re.findall(r"rchar: (\d+)", Path("/proc/self/io").read_text(encoding="utf-8"))[0])


@pytest.mark.usefixtures("here")
def test_the_last_lines_and_what_comes_after_them_are_all_that_is_read(tmp_path: Path) -> None:
    run = start(tmp_path, processes={"a": {"command": ["sleep", "300"], "grace_period": 1}}, local={"tty": False})
    log = run.process_dir(0) / "log"
    with log.open("ab") as file:
        file.writelines(b"%049d\n" % number for number in range(_LINES))
    before = bytes_read()
    lines = read_lines("exp", LogQuery(tail=5, follow=True))
    assert [int(line.text) for line in islice(lines, 5)] == [*range(_LINES - 5, _LINES)]
    with log.open("ab") as file:
        file.write(b"%049d\n" % _LINES)
    assert int(next(lines).text) == _LINES
    assert bytes_read() - before < _LINES * _LENGTH / 10


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
    texts = [int(text.split()[0]) for _, text in LogFile(log).lines()]
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
        end = file.end_of_lines()
        new = list(file.lines(place, end))
        place = end
        seen += [int(text.split()[0]) for _, text in new]
    assert seen == list(range(40000))


def test_a_reader_that_is_overtaken_goes_on_where_lines_are_kept(tmp_path: Path) -> None:
    (log,) = _logs(tmp_path, 1)
    _append(log, b"".join(b"%d of a line with something in it\n" % i for i in range(50000)))
    lines = LogFile(log).lines()
    first = [int(next(lines)[1].split()[0]) for _ in range(10)]
    LogFile(log).cut(1 << 16)
    rest = [int(text.split()[0]) for _, text in lines]
    assert first == list(range(10))
    assert rest[-1] == 49999
    # Lines read together with the first ones follow as well; then whole lines, in order, without duplicates.
    assert rest == sorted(set(rest))
    assert len(rest) < 5000


@settings(max_examples=300)
@given(
    lines=st.lists(st.text("ab \r1", max_size=5), max_size=8),
    regex=st.sampled_from(
        ["a", "^a", "b$", "a.b", r"\s", "[^a]", r"a\sb", "^$", r"\bb", "a*", "(?!a)b", r"b\Z", "a|^1"]
    ),
)
def test_an_expression_finds_the_same_lines_in_a_block_as_line_by_line(lines: list[str], regex: str) -> None:
    query, whole = LogQuery(regex=regex), [f"{line}\n" for line in lines]
    assert query.matching("".join(whole)) == "".join(line for line in whole if re.search(regex, line))


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("in_blocks", [True, False])
def test_a_follower_is_told_how_many_bytes_it_lost(tmp_path: Path, in_blocks: bool) -> None:
    run = start(tmp_path, processes={"a": {"command": ["sleep", "300"], "grace_period": 1}}, local={"tty": False})
    log = run.process_dir(0) / "log"
    lines = read_lines("exp", LogQuery(follow=True, regex="line|last", in_blocks=in_blocks))
    _append(log, b"first line\n")
    assert next(lines).text == "first line\n"
    _append(log, b"".join(b"line %05d\n" % number for number in range(50_000)))
    LogFile(log).cut(100_000)
    _append(log, b"last\n")
    lost, kept = next(lines).text, ""
    while not kept.endswith("last\n"):
        kept += next(lines).text
    kept = kept.removesuffix("last\n")
    assert lost == f"... {size(50_000 * 11 - len(kept))} of a are missing: its log reached its size limit\n"
    assert kept.endswith("line 49999\n")
    assert 90_000 < len(kept) <= 100_000


def planned_sizes(folder: Path, **local: object) -> list[int]:
    """Return the planned planned_sizes for a process without a limit, one with 10Mi, and one with `unlimited`."""
    own = {"a": {}, "b": {"local": {"log_size": "10Mi"}}, "c": {"local": {"log_size": "unlimited"}}}
    processes = {name: {"command": ["true"], **more} for name, more in own.items()}
    experiment = from_data({"name": "x", "processes": processes, "local": local})
    return [process.log_bytes for process in plan_here(experiment, allocate(experiment), folder, "r").processes]


def test_a_process_comes_before_the_experiment_and_that_before_1_gib(tmp_path: Path) -> None:
    assert planned_sizes(tmp_path) == [1 << 30, 10 << 20, 0]
    assert planned_sizes(tmp_path, log_size="100Mi") == [100 << 20, 10 << 20, 0]
    assert planned_sizes(tmp_path, log_size="unlimited") == [0, 10 << 20, 0]
