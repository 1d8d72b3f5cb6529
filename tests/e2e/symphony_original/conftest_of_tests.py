"""A conftest for Symphony's own tests, which run with the names of this package, each on a machine of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import symphony.tmux

from symphony_charts.local import up
from symphony_charts.local.runs import live_runs

# Private names of the original's module, which its tests read and replace.
symphony.tmux.cluster = SimpleNamespace(_SERVER_NAME=None, _DEFAULT_WINDOW="__main__")


@pytest.fixture(autouse=True)
def own_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Isolate the runs of each test; upstream, only tmux sessions were left of them."""
    monkeypatch.setenv("SYMPH_STATE_DIR", str(tmp_path / "state"))
    yield
    for run in live_runs():
        up.down(run)
