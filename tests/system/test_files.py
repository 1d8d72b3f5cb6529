from __future__ import annotations

import os
from pathlib import Path

import pytest

from symphony_charts.errors import ToolFailed
from symphony_charts.system.files import write_file, write_tree


def test_a_file_and_its_folders_are_written(tmp_path: Path) -> None:
    assert write_file(tmp_path / "a" / "b.txt", b"x")
    assert (tmp_path / "a" / "b.txt").read_bytes() == b"x"


def test_an_unchanged_file_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_file(path, b"x")
    os.utime(path, (1, 1))
    assert not write_file(path, b"x")
    assert path.stat().st_mtime == 1


def test_a_changed_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_file(path, b"long content")
    before = path.stat().st_ino
    assert write_file(path, b"x")
    assert path.read_bytes() == b"x"
    assert path.stat().st_ino != before
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]


def test_modes_do_not_depend_on_the_umask(tmp_path: Path) -> None:
    old = os.umask(0o077)
    try:
        write_file(tmp_path / "a", b"x")
    finally:
        os.umask(old)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o644


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
