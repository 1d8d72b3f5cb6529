"""The folders that ship with the package: content and location."""

from __future__ import annotations

from pathlib import Path

import pytest

from symphony_charts.errors import NotFound
from symphony_charts.system import package_data


@pytest.mark.parametrize("name", package_data.FOLDERS)
def test_each_folder_is_there_with_sorted_paths_and_no_leftovers(name: str) -> None:
    files = package_data.folder(name)
    assert files
    assert list(files) == sorted(files)
    assert not [path for path in files if "__pycache__" in path or path.endswith(".gitkeep")]


@pytest.mark.parametrize("name", ["examples", "", "..", "local/..", "chart-template/"])
def test_nothing_else_is_given_out(name: str) -> None:
    with pytest.raises(NotFound, match="no data folder"):
        package_data.folder(name)


def test_an_installed_copy_comes_before_a_folder_beside_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(package_data, "_PACKAGE", tmp_path / "package")
    for place in (tmp_path / "local", tmp_path / "package" / "_data" / "local"):
        place.mkdir(parents=True)
    assert package_data.path("local") == tmp_path / "package" / "_data" / "local"


def test_a_damaged_installation_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package_data, "_PACKAGE", tmp_path / "package")
    with pytest.raises(NotFound, match="reinstall"):
        package_data.path("local")
