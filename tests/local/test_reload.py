"""Changes of real files, saved in the ways of editors and version control."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from symphony_charts.local.reload import FileWatch, Watched


@pytest.fixture
def files(tmp_path: Path) -> FileWatch:
    (tmp_path / "lib" / "sub" / "deep").mkdir(parents=True)
    (tmp_path / "lib" / "skip").mkdir()
    (tmp_path / "lib" / "a.py").write_text("1")
    (tmp_path / "one.py").write_text("1")
    return FileWatch([Watched(path=tmp_path / "lib")], tmp_path / "one.py", ["skip"])


def names(files: FileWatch, folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in files.changed()}


@pytest.mark.parametrize(
    ("act", "changed"),
    [
        (lambda folder: (folder / "lib/sub/deep/new.py").write_text("1"), {"lib/sub/deep/new.py"}),
        (lambda folder: (folder / "lib/link.py").symlink_to("a.py"), {"lib/link.py"}),
        (lambda folder: (folder / "lib/a.py").unlink(), {"lib/a.py"}),
        (lambda folder: (folder / "lib/a.py").read_text(), set()),
        (lambda folder: (folder / "lib/skip/x.py").write_text("ignored"), set()),
        (lambda folder: (folder / "two.py").write_text("beside a watched file"), set()),
    ],
)
def test_a_file_has_changed_when_it_is_written_linked_or_removed(
    files: FileWatch, tmp_path: Path, act: Callable[[Path], object], changed: set[str]
) -> None:
    act(tmp_path)
    assert names(files, tmp_path) == changed


def test_a_file_that_is_saved_beside_and_renamed_over_has_changed_each_time(files: FileWatch, tmp_path: Path) -> None:
    for round_ in range(3):
        (tmp_path / "other").write_text(str(round_))
        (tmp_path / "other").rename(tmp_path / "one.py")
        assert names(files, tmp_path) == {"one.py"}


def test_files_of_a_folder_that_comes_later_are_seen(files: FileWatch, tmp_path: Path) -> None:
    (tmp_path / "outside" / "in").mkdir(parents=True)
    (tmp_path / "outside" / "in" / "x.py").write_text("1")
    assert names(files, tmp_path) == set()
    (tmp_path / "outside").rename(tmp_path / "lib" / "inside")
    assert names(files, tmp_path) == {"lib/inside/in/x.py"}
    (tmp_path / "lib" / "inside" / "in" / "x.py").write_text("2")
    assert names(files, tmp_path) == {"lib/inside/in/x.py"}


def test_a_folder_that_is_moved_away_is_watched_no_longer(files: FileWatch, tmp_path: Path) -> None:
    (tmp_path / "lib" / "sub").rename(tmp_path / "gone")
    names(files, tmp_path)
    (tmp_path / "gone" / "deep" / "x.py").write_text("1")
    assert names(files, tmp_path) == set()


def test_a_watched_folder_may_be_removed_and_come_again(files: FileWatch, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "lib")
    assert "lib/a.py" in names(files, tmp_path)
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "a.py").write_text("2")
    assert names(files, tmp_path) == {"lib/a.py"}
