"""Processes that a changed file affects, and files that are ignored."""

from __future__ import annotations

from pathlib import PurePath

import pytest

from symphony_charts.local.reload import IGNORED, Watched, concerned, is_ignored

ROOT = PurePath("/w/lib")


LEFT = (".git/index", "__pycache__/a.cpython-311.pyc", "a.pyc", ".mypy_cache/x", "x/.venv/bin/y", ".a.py.swp", "a.py~")
ORDINARY = ("a.py", "x/y.yaml", "git", ".env", "tmp/a", "swp")


@pytest.mark.parametrize("name", [*LEFT, "4913", *ORDINARY])
def test_what_editors_and_tools_leave_behind_is_ignored_and_nothing_else(name: str) -> None:
    assert is_ignored(ROOT / name, [ROOT], IGNORED) is (name not in ORDINARY)


def test_a_pattern_fits_a_name_or_the_path_below_the_folder() -> None:
    assert is_ignored(ROOT / "out/a.ckpt", [ROOT], ["*.ckpt"])
    assert is_ignored(ROOT / "out/a.txt", [ROOT], ["out/*"])
    assert not is_ignored(ROOT / "a.txt", [ROOT], ["lib"])
    assert not is_ignored(PurePath("/home/.venv/lib/a.py"), [PurePath("/home/.venv/lib")], IGNORED)


def test_a_change_concerns_the_processes_of_its_folder_and_of_its_file() -> None:
    watched = [Watched(path=ROOT, processes=("a",)), Watched(path=ROOT / "x.py", processes=("b", "c"))]
    assert concerned([ROOT / "x.py", ROOT / "d/y.py"], watched) == {
        "a": ["d/y.py", "x.py"],
        "b": ["x.py"],
        "c": ["x.py"],
    }


def test_without_names_a_change_concerns_all_processes() -> None:
    assert concerned([ROOT / "x.py", PurePath("/w/other.py")], [Watched(path=ROOT)]) == {"": ["x.py"]}
