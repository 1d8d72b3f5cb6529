"""Tree ids equal git's."""

from __future__ import annotations

from pathlib import Path

from symphony_charts.gitops.snapshot import tree_id
from tests.gitops.servers import git


def test_git_gives_a_folder_the_same_name(tmp_path: Path) -> None:
    files = {"a.b/c": b"2", "a/d": b"3", "b-": b"", "b/x": b"4", "é": b"5"}
    for path, content in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / path).write_bytes(content)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    assert git(tmp_path, "write-tree").strip() == tree_id(files)
