"""Fixtures with Symphony's names, and for scripts that use them as separate programs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from symphony_charts.compat import names
from symphony_charts.settings.user import SymphonyConfig

EXAMPLES = Path(__file__).parents[2] / "examples"
Script = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def symphony() -> Iterator[None]:
    """Make `import symphony` work in this test."""
    with names():
        yield
    SymphonyConfig.reset()


@pytest.fixture
def own_state(here: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the runs of the test where `script` keeps them."""
    monkeypatch.setenv("SYMPH_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("SYMPH_RUNTIME_DIR", str(tmp_path / "r"))


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Run a script by ``python -m symphony_charts.compat``, or another `module`, with its own home and state folder."""

    def run(
        *words: Path | str,
        env: Mapping[str, str] | None = None,
        module: Sequence[str] = ("-m", "symphony_charts.compat"),
    ) -> subprocess.CompletedProcess[str]:
        full = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("SYMPH", "KUBE"))},
            "HOME": str(tmp_path),
            "SYMPH_STATE_DIR": str(tmp_path / "state"),
            "SYMPH_RUNTIME_DIR": str(tmp_path / "r"),
            "KUBECONFIG": str(tmp_path / "none"),
            **(env or {}),
        }
        argv = [sys.executable, *module, *map(str, words)]
        return subprocess.run(argv, capture_output=True, text=True, timeout=60, env=full, check=False, cwd=tmp_path)

    return run
