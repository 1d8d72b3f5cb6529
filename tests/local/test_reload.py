"""Processes that a changed file affects, and files that are ignored."""

from __future__ import annotations

from pathlib import PurePath

import pytest

from symphony_charts.local.reload import IGNORED, Watched, concerned, is_ignored

ROOT = PurePath("/w/lib")


@pytest.mark.parametrize(
    "name",
    [
        ".git/index",
        "__pycache__/a.cpython-311.pyc",
        "a.pyc",
        ".mypy_cache/x",
        "x/.venv/bin/y",
        ".a.py.swp",
        "a.py~",
        "4913",
    ],
)
def test_what_editors_and_tools_leave_behind_is_ignored(name: str) -> None:
    assert is_ignored(ROOT / name, [ROOT], IGNORED)


@pytest.mark.parametrize("name", ["a.py", "x/y.yaml", "git", ".env", "tmp/a", "swp"])
def test_ordinary_files_are_not_ignored(name: str) -> None:
    assert not is_ignored(ROOT / name, [ROOT], IGNORED)


def test_folders_above_what_is_watched_are_not_asked() -> None:
    root = PurePath("/home/.venv/lib")
    assert not is_ignored(root / "a.py", [root], IGNORED)


def test_a_pattern_fits_a_name_or_the_path_below_the_folder() -> None:
    assert is_ignored(ROOT / "out/a.ckpt", [ROOT], ["*.ckpt"])
    assert is_ignored(ROOT / "out/a.txt", [ROOT], ["out/*"])
    assert not is_ignored(ROOT / "a.txt", [ROOT], ["lib"])


def test_a_change_concerns_the_processes_of_its_folder_and_of_its_file() -> None:
    watched = [Watched(path=ROOT, processes=("a",)), Watched(path=ROOT / "x.py", processes=("b", "c"))]
    assert concerned([ROOT / "x.py", ROOT / "d/y.py"], watched) == {
        "a": ["d/y.py", "x.py"],
        "b": ["x.py"],
        "c": ["x.py"],
    }


def test_without_names_a_change_concerns_all_processes() -> None:
    assert concerned([ROOT / "x.py", PurePath("/w/other.py")], [Watched(path=ROOT)]) == {"": ["x.py"]}
