"""The JSON files of a run are written whole or not at all, and a damaged one is said to be. Must stay light."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

from symphony_charts.errors import NotFound, ToolFailed

__all__ = ["NO_STATUS", "damaged", "flush_folder", "read_json", "write_json"]

NO_STATUS = b"?  \n"
"""The content of the file `exit` of a process until it ends: as long as any status, which is written over it."""


def write_json(path: Path, data: object, *, is_safe: bool = False) -> None:
    """Write beside, then rename: a reader sees the old or the new text, never half of one.

    With `is_safe` that holds after a power loss as well, which costs a write to the disk. Raises ToolFailed where the
    file system refuses, and then the old text stands.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                # Not json.dump, which writes in small pieces and is many times slower.
                file.write(json.dumps(data))
                file.flush()
                if is_safe:
                    os.fsync(descriptor)
            beside.rename(path)
        except BaseException:
            with contextlib.suppress(OSError):
                beside.unlink()
            raise
        if is_safe:
            flush_folder(path.parent)
    except OSError as error:
        raise ToolFailed(f"cannot write {path.name} of a run: {error.strerror}", str(path)) from error


def flush_folder(folder: Path) -> None:
    """Flush the names in `folder` to the disk; a file system that cannot has none to lose."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_json(path: Path) -> dict[str, Any]:
    """Return the map in a file of a run. Raises NotFound if it is missing, ToolFailed if it is damaged."""
    try:
        data = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise NotFound(f"the run has no {path.name}", str(path.parent)) from None
    except OSError as error:
        raise damaged(path, error.strerror or "it cannot be read") from error
    except (ValueError, RecursionError) as error:
        raise damaged(path, str(error) if path.stat().st_size else "it is empty") from error
    if not isinstance(data, dict):
        raise damaged(path, "it holds no map")
    return data


def damaged(path: Path, why: str) -> ToolFailed:
    """Return the error that says that a file of a run cannot be used."""
    name = path.parent.parent.name
    return ToolFailed(
        f'{path.name} of a run of "{name}" is damaged: {why}',
        at=str(path),
        next=f"symph down {name} ends what is left of it; symph local gc removes it",
    )
