"""Text of the borders and the status line of tiles, and of a pipe whose lines cannot be read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symphony_charts.backend.status import ExperimentStatus, InstanceStatus, LogLine, LogQuery, Phase
from symphony_charts.cli.tiles import Feed, capacity, choose, literal, status_line, window_name
from symphony_charts.errors import ToolFailed
from symphony_charts.local.backend import LocalWatcher


def instance(index: int, phase: Phase = "running") -> InstanceStatus:
    state = f"{phase} 4s"
    return InstanceStatus(
        name=f"a-{index}", process="a", index=index, phase=phase, state=state, ready=phase == "running"
    )


def test_failed_processes_have_the_first_tiles() -> None:
    every = [instance(index, "failed" if index == 8 else "running") for index in range(10)]
    assert [one.name for one in choose(every, 3)] == ["a-8", "a-0", "a-1"]
    assert [one.name for one in choose(every, 10)][:2] == ["a-8", "a-0"]


@given(st.integers(1, 500), st.integers(1, 200))
def test_there_is_room_for_one_at_least_and_for_so_many_that_each_can_be_read(width: int, height: int) -> None:
    count = capacity(width, height)
    assert 1 <= count <= 16
    assert count == 1 or count * 24 * 4 <= width * height


def test_the_status_line_names_failed_processes_before_the_others() -> None:
    every = tuple(instance(index, "failed" if index > 3 else "running") for index in range(8))
    status = ExperimentStatus(name="rl", experiment="rl", backend="tmux", phase="failed", started=0.0, instances=every)
    line = status_line(status, 2, 9.0)
    assert line == "2 more are not shown   rl  failed 9s   failed: a-4, a-5, a-6  +1   a 4/8"
    assert window_name(status) == "rl 4/8 4 failed"


@given(st.text())
def test_tmux_finds_neither_a_format_nor_an_end_of_a_command_in_what_is_told(text: str) -> None:
    told = literal(text)
    assert told.isprintable()
    assert not re.search(r"(?<!#)(##)*#(?!#)", told)
    assert not told.endswith(";")


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ToolFailed("the log is damaged"), "symph: the log is damaged\n"),
        (OSError(24, "too many"), "symph: OSError: [Errno 24] too many\n"),
    ],
)
def test_the_last_line_gives_the_reason_for_the_end_of_output(
    error: Exception, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def logs(_watcher: LocalWatcher, name: str, _query: LogQuery) -> Iterator[LogLine]:
        yield LogLine(time=0.0, process="a", text=f"of {name}\n")
        raise error

    monkeypatch.setattr(LocalWatcher, "logs", logs)
    feed = Feed(LocalWatcher(), "exp", ["a"], tmp_path)
    feed.start()
    with feed.pipes["a"].open() as pipe:
        assert [pipe.readline(), pipe.readline()] == ["of exp\n", line]
