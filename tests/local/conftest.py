"""Tests of runs: tmux must be there, and every run that a test leaves is ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from symphony_charts.cluster import local_run
from symphony_charts.cluster.local_store import live_runs


@pytest.fixture
def tmux(private_places: Path, need_tool: Callable[[str], str]) -> Iterator[None]:
    """A machine on which runs can be started; nothing of them is left afterwards."""
    need_tool("tmux")
    yield
    for run in live_runs():
        local_run.down(run)
