"""The conformance suite on real tmux."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from symphony_charts.clusters.tmux import TmuxCluster
from symphony_charts.settings.user import SymphonyConfig
from tests.clusters.conformance import Place, TestChanges, TestFiles, TestLogs, TestStates  # noqa: F401 - tried here


@pytest.fixture
def place(here: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    yield Place(cluster=TmuxCluster(), flags=("--on", "tmux"), env=dict(os.environ))
    SymphonyConfig.reset()
