"""Content of a tile's pipe when the lines cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from symphony_charts.backend.status import LogLine, LogQuery
from symphony_charts.cli.tiles import Feed
from symphony_charts.errors import ToolFailed
from symphony_charts.local.backend import LocalWatcher


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ToolFailed("the log is damaged"), "symph: the log is damaged\n"),
        (OSError(24, "too many"), "symph: OSError: [Errno 24] too many\n"),
    ],
)
def test_why_no_line_comes_any_more_is_the_last_line(
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
