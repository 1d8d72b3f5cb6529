"""Fixtures of the command line's tests: the command in an empty folder, and a project beside a repository."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import symph as command
from tests.cli.git_project import Project

Symph = Callable[..., subprocess.CompletedProcess[str]]

SPEC = """\
name: exp
image: busybox:1.37.0
processes:
  server: {command: [serve], binds: data, lifecycle: service}
  client: {command: [work], connects: data, replicas: 2}
"""


@pytest.fixture
def symph(tmp_path: Path) -> Symph:
    """Run the command in an empty folder."""

    def run(*args: str, status: int | None = 0) -> subprocess.CompletedProcess[str]:
        env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "SYMPH_STATE_DIR": str(tmp_path / "state")}
        ended = command.symph(*args, cwd=tmp_path, env=env)
        assert status is None or ended.returncode == status, ended.stderr
        return ended

    return run


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    file = tmp_path / "exp.yaml"
    file.write_text(SPEC)
    return file


@pytest.fixture
def project(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    need_tool: Callable[[str], str],
) -> Project:
    need_tool("git")
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path, capsys)
