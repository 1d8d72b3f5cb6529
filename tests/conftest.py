"""What all tests share: no test sees the user's state, home, tmux or git settings."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# No deadlines: the machine may be busy with other tests. A run that decides whether a change lands tries the same
# examples each time; everywhere else new ones are looked for.
settings.register_profile("here", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("here"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")


@pytest.fixture(autouse=True)
def private_places(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """State, sockets and home in a folder of this test; its path is short, since socket paths are limited."""
    folder = Path(tempfile.mkdtemp(prefix="symph-t-", dir="/tmp"))
    for name in [name for name in os.environ if name.startswith(("GIT_", "HELM_", "KUBE", "SYMPH_", "TMUX"))]:
        if name != "SYMPH_REQUIRE_TOOLS":
            monkeypatch.delenv(name)
    monkeypatch.setenv("SYMPH_STATE_DIR", str(folder / "state"))
    monkeypatch.setenv("SYMPH_RUNTIME_DIR", str(folder / "run"))
    monkeypatch.setenv("HOME", str(folder / "home"))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    (folder / "home").mkdir()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def need_tool() -> Callable[[str], str]:
    """The path of a program on PATH; without it the test is skipped, or fails where every tool must be there."""

    def find(name: str) -> str:
        path = shutil.which(name)
        if path is not None:
            return path
        if os.environ.get("CI") or os.environ.get("SYMPH_REQUIRE_TOOLS"):
            pytest.fail(f"{name} is not installed, and this run may not skip")
        pytest.skip(f"{name} is not installed")

    return find
