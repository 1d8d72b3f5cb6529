"""Files are written whole or not at all, and not at all when nothing changed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from symphony_charts.errors import ToolFailed

__all__ = ["write_file", "write_tree"]


def write_file(path: Path, data: bytes, *, mode: int = 0o644) -> bool:
    """Make `path` hold `data`, its folders included; False when it did already and nothing was touched.

    The file is written beside its place and renamed over it, so that readers see the old or the new one, whole.
    Raises ToolFailed when the file system refuses.
    """
    try:
        if _holds(path, data):
            return False
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, data, mode)
    except OSError as error:
        raise ToolFailed(f"cannot write {path}: {error.strerror or error}", at=str(path)) from error
    return True


def write_tree(folder: Path, files: Mapping[str, bytes]) -> list[str]:
    """Write `files` (relative POSIX path -> content) below `folder`; the paths that changed, in order.

    Other files in the folder stay as they are. Raises ValueError for a path that leads out of the folder.
    """
    for name in files:
        parts = PurePosixPath(name).parts
        if not parts or name.startswith("/") or ".." in parts:
            raise ValueError(f"{name!r} does not stay inside the folder")
    return [name for name, data in files.items() if write_file(folder / name, data)]


def _holds(path: Path, data: bytes) -> bool:
    try:
        return path.stat().st_size == len(data) and path.read_bytes() == data
    except (FileNotFoundError, NotADirectoryError):
        return False


def _replace(path: Path, data: bytes, mode: int) -> None:
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(beside).chmod(mode)
        Path(beside).replace(path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise
