"""Copies of folders, by real tar and without it: links, hard links, and special files."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from symphony_charts.errors import Conflict
from symphony_charts.system.files import copy_over, refuse_left, unpack


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Create a folder as training leaves it."""
    folder = tmp_path / "src"
    (folder / "ckpt-10").mkdir(parents=True)
    (folder / "ckpt-10/weights").write_text("w")
    os.link(folder / "ckpt-10/weights", folder / "twin")
    (folder / "latest").symlink_to("ckpt-10")
    (folder / "out").symlink_to("../elsewhere")
    (folder / "absolute").symlink_to("/no/such/place")
    os.mkfifo(folder / "pipe")
    return folder


def seen(folder: Path) -> dict[str, str]:
    """Return its names, with their contents or link targets."""
    paths = {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*"))}
    return {
        name: f"-> {path.readlink()}" if path.is_symlink() else "" if path.is_dir() else path.read_text()
        for name, path in paths.items()
    }


WHOLE = {
    "absolute": "-> /no/such/place",
    "ckpt-10": "",
    "ckpt-10/weights": "w",
    "latest": "-> ckpt-10",
    "out": "-> ../elsewhere",
    "twin": "w",
}


def test_an_archive_gives_links_and_twins_and_says_what_it_left_out(source: Path, tmp_path: Path) -> None:
    subprocess.run(["tar", "cf", str(tmp_path / "a.tar"), "."], cwd=source, check=True)
    with (tmp_path / "a.tar").open("rb") as archive:
        left = unpack(archive, tmp_path / "to")
    assert (seen(tmp_path / "to"), left) == (WHOLE, ["./pipe"])
    with pytest.raises(Conflict, match=r"a:/src was copied without \./pipe"):
        refuse_left("a:/src", left)


def test_a_second_copy_writes_over_the_first_and_through_no_link(source: Path, tmp_path: Path) -> None:
    target, outside = tmp_path / "to", tmp_path / "outside"
    assert copy_over(source, target) == ["pipe"]
    outside.mkdir()
    (target / "ckpt-10/weights").unlink()
    (target / "ckpt-10").rmdir()
    (target / "ckpt-10").symlink_to(outside)
    (target / "twin").unlink()
    (target / "twin").symlink_to(outside / "twin")
    (target / "out").unlink()
    (target / "out").write_text("a file before")
    assert copy_over(source, target) == ["pipe"]
    assert (seen(target), list(outside.iterdir())) == (WHOLE, [])


def test_nothing_of_an_archive_is_written_outside_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/file").write_text("x")
    words = ["tar", "cPf", str(tmp_path / "a.tar"), "--transform", "s,^file,../escaped,", "file"]
    subprocess.run(words, cwd=tmp_path / "in", check=True)
    with (tmp_path / "a.tar").open("rb") as archive:
        assert unpack(archive, tmp_path / "to") == ["../escaped"]
    assert not (tmp_path / "escaped").exists()


def test_no_link_of_an_archive_is_made_through_another(tmp_path: Path) -> None:
    outside, archive = tmp_path / "outside", io.BytesIO()
    outside.mkdir()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, to in (("way", str(outside)), ("way/link", "/no/such/place"), ("way/in/link", "/no/such/place")):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, to
            tar.addfile(member)
    archive.seek(0)
    assert unpack(archive, tmp_path / "to") == ["way/link", "way/in/link"]
    assert (seen(tmp_path / "to"), list(outside.iterdir())) == ({"way": f"-> {outside}"}, [])


def test_a_file_is_not_put_into_a_folder_of_its_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "to").mkdir()
    with pytest.raises(IsADirectoryError):
        copy_over(tmp_path / "file", tmp_path / "to")
    assert not list((tmp_path / "to").iterdir())
