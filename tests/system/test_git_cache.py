"""A repository's cache is either valid or ignored."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from symphony_charts.errors import ToolMissing
from symphony_charts.system.git.cache import Cache
from symphony_charts.system.git.program import git_version


@pytest.fixture
def git_2_20(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Put a git that reports version 2.20 first in PATH."""
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho git version 2.20.1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    git_version.cache_clear()
    yield
    git_version.cache_clear()


@pytest.mark.usefixtures("git_2_20")
def test_a_git_that_is_too_old_makes_no_cache(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "caches", str(tmp_path), "main")
    with cache.locked(10), pytest.raises(ToolMissing, match=r"git 2\.20 is too old"):
        cache.prepare()
    assert not cache.repo.exists()


def test_damaged_notes_are_as_good_as_none(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "caches", str(tmp_path), "main")
    cache.folder.mkdir(parents=True)
    for name in ("tip", "blobs", "made"):
        (cache.folder / name).write_bytes(b"\xe9\xff\n")
    assert cache.tip is None
    assert cache.missing({"a"}) == {"a"}
    assert cache.algorithm == "sha1"
