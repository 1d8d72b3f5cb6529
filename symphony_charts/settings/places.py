"""Locations of settings files: the project's, upwards from a folder, and the user's."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from symphony_charts.errors import SpecError

_FILE_NAMES = (".symph.yaml", ".symph.yml")


def project_file(folder: Path) -> Path | None:
    """Return the settings file of the nearest folder at or above `folder` that has one.

    Raises SpecError if a folder has two.
    """
    here, home = folder.absolute(), Path.home()
    for parent in (here, *here.parents):
        if file := only_file(parent, _FILE_NAMES):
            return file
        if parent == home:
            break
    return None


def only_file(folder: Path, names: Iterable[str]) -> Path | None:
    """Return the file in `folder` that has one of `names`. Raises SpecError if there are two."""
    files = [folder / name for name in names if (folder / name).is_file()]
    if len(files) > 1:
        raise SpecError.one(f"{files[0].name} and {files[1].name} both exist", at=str(folder), next="keep one of them")
    return files[0] if files else None


def user_file() -> Path | None:
    """Return the path of the user's settings, even if the file is missing; None for a user without a home."""
    base = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    try:
        # The XDG specification ignores relative paths.
        return (base if base.is_absolute() else Path.home() / ".config") / "symph" / "config.yaml"
    except RuntimeError:
        return None


def says_defaults() -> bool:
    """Return True if a settings file for the current folder may set defaults of options."""
    try:
        files = (project_file(Path()), user_file())
    except FileNotFoundError:
        # `symph ls` must also work in a deleted folder.
        return False
    return any(file is not None and file.is_file() and b"defaults" in file.read_bytes() for file in files)
