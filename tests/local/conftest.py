"""Fixtures for tests of runs: tmux must be installed, and every run of a test is ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from symphony_charts.local import up
from symphony_charts.local.runs import live_runs


@pytest.fixture
def tmux(private_places: Path, need_tool: Callable[[str], str]) -> Iterator[None]:
    """Provide a machine on which runs can be started; end all of them afterwards."""
    need_tool("tmux")
    yield
    for run in live_runs():
        up.down(run)
