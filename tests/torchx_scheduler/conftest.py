"""The `torchx` command of the release and of the nightly, each as its users start it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.tools import torchx_nightly


@dataclass(kw_only=True)
class Torchx:
    """A TorchX by its `path` (empty: the installed release); commands run in `folder`."""

    folder: Path
    path: str = ""
    env: dict[str, str] = field(default_factory=dict)
    timeout_s: float = 120

    def __call__(self, *words: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        """Run ``torchx WORDS`` and check that it ends with `status`."""
        env = {**os.environ, "PYTHONPATH": self.path, "NO_COLOR": "1", **self.env}
        argv = [sys.executable, "-m", "torchx.cli.main", *words]
        done = subprocess.run(
            argv, env=env, cwd=self.folder, capture_output=True, text=True, timeout=self.timeout_s, check=False
        )
        assert done.returncode == status, f"{' '.join(words)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def request(self, *words: str) -> str:
        """Return the request that a dry run shows."""
        return self("run", "-s", "symph", "--dryrun", *words).stdout.partition("=== SCHEDULER REQUEST ===\n")[2]


@pytest.fixture
def release(tmp_path: Path) -> Torchx:
    """Return TorchX as the extra installs it."""
    pytest.importorskip("torchx")
    return Torchx(folder=tmp_path)


@pytest.fixture
def nightly(tmp_path: Path) -> Torchx:
    """Return the newest TorchX, which the test environment has beside the release."""
    found = torchx_nightly()
    if found is None and (os.environ.get("CI") or os.environ.get("SYMPH_REQUIRE_TOOLS")):
        pytest.fail("scripts/setup has not installed torchx-nightly, and this run may not skip")
    if found is None:
        pytest.skip("torchx-nightly is not there: scripts/setup installs it")
    return Torchx(folder=tmp_path, path=str(found))


@pytest.fixture(params=["release", "nightly"])
def torchx(request: pytest.FixtureRequest) -> Torchx:
    """Return each of the two."""
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Torchx)
    return found
