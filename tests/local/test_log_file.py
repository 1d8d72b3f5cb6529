"""A log reads the same from either end and from any moment, whatever its content and growth."""

from __future__ import annotations

import tempfile
from itertools import accumulate
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from symphony_charts.local.logs import Clock, LogFile, Stamped

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
    for moment, size in zip(moments, sizes, strict=True):
        if size <= len(content):
            clock.append(1000 * moment, size)
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
        result.append((place, moment, line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8", "replace") + ending))
    return result


def split(log: Path) -> list[bytes]:
    """Return the lines of a file with their ends, cut at line feeds alone."""
    *whole, last = log.read_bytes().split(b"\n")
    return [line + b"\n" for line in whole] + ([last] if last else [])


def dated(lines: list[Stamped]) -> list[Stamped]:
    """Return the lines with moment -1 for those without a time in the index, which were written just now."""
    return [(place, moment if moment < 1e6 else -1.0, text) for place, moment, text in lines]


@settings(max_examples=50)
@given(lines=LINES, end=st.sampled_from([b"", b"half", b"half\r"]), steps=STEPS, width=st.sampled_from([1, 900]))
def test_it_reads_the_same_from_both_ends_and_from_any_moment(
    lines: list[bytes], end: bytes, steps: list[tuple[int, int]], width: int
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log = written(folder, lines, end, steps, width)
        expected = plainly(folder)
        assert dated(list(log.lines())) == expected
        blocks = list(log.blocks_from_end(0, log.size()))
        assert dated([line for block in reversed(blocks) for line in block]) == expected
        whole = [line for line in expected if line[2].endswith("\n")]
        assert log.end_of_lines() == (whole[-1][0] if whole else 0)
        for moment in {0.0, 1.0, *(second for _, second, _ in expected if second >= 0)}:
            since = [line for line in expected if line[1] < 0 or line[1] >= moment]
            assert dated(list(log.lines(log.start_since(moment)))) == since


def test_a_log_that_is_not_there_is_empty(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "log")
    assert (log.size(), list(log.lines()), list(log.blocks_from_end(0, 5)), log.end_of_lines()) == (0, [], [[]], 0)


def test_a_row_that_a_full_disk_has_cut_off_is_overwritten_by_the_next(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"one\ntwo\nthree\n")
    clock = Clock(tmp_path / "log")
    clock.append(1000, 4)
    clock.path.write_bytes(clock.path.read_bytes() + b"half")
    clock.append(3000, 14)
    assert [moment for _, moment, _ in LogFile(tmp_path / "log").lines()] == [1.0, 3.0, 3.0]
