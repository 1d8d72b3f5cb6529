from __future__ import annotations

import os
from pathlib import Path

import pytest

from symphony_charts.errors import ToolFailed
from symphony_charts.system.files import write_file, write_tree


def test_a_changed_file_is_replaced_whole_and_an_unchanged_one_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "a"
    old = os.umask(0o077)
    try:
        assert write_file(path, b"long content")
    finally:
        os.umask(old)
    assert path.stat().st_mode & 0o777 == 0o644
    before = path.stat().st_ino
    assert write_file(path, b"x")
    assert path.read_bytes() == b"x"
    assert path.stat().st_ino != before
    os.utime(path, (1, 1))
    assert not write_file(path, b"x")
    assert path.stat().st_mtime == 1
    assert [entry.name for entry in path.parent.iterdir()] == ["a"]


def test_a_tree_names_what_changed_and_leaves_other_files(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    write_tree(tmp_path, {"a": b"1", "b/c": b"2"})
    assert write_tree(tmp_path, {"a": b"1", "b/c": b"3", "d": b"4"}) == ["b/c", "d"]
    assert (tmp_path / "mine").exists()


@pytest.mark.parametrize("name", ["../a", "/a", "a/../../b", ""])
def test_a_path_out_of_the_folder_is_refused_before_anything_is_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="inside the folder"):
        write_tree(tmp_path / "x", {"ok": b"1", name: b"2"})
    assert not (tmp_path / "x").exists()


def test_what_the_file_system_refuses_is_an_error_that_names_the_path(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a file, no folder")
    with pytest.raises(ToolFailed, match=r"cannot write .*a/b"):
        write_file(tmp_path / "a" / "b", b"x")
