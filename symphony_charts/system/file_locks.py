"""A locked file gives one process at a time a thing of this machine; the lock is gone with whoever holds it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from symphony_charts.errors import ToolFailed

__all__ = ["alone", "claim", "claimants", "note"]

_ALONE_S = 30.0


@contextlib.contextmanager
def alone(folder: Path, timeout_s: float = _ALONE_S) -> Iterator[None]:
    """Hold the lock of `folder`, made where absent, to make and read claims there. Raises ToolFailed when late."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = _open(folder / "lock")
    deadline = time.monotonic() + timeout_s
    try:
        while not _locked(descriptor, fcntl.LOCK_EX):
            if time.monotonic() > deadline:
                raise ToolFailed(f"somebody has held the claims for {timeout_s:g} s", str(folder))
            time.sleep(0.01)
        yield
    finally:
        os.close(descriptor)


def claim(path: Path, *, shared: bool) -> int | None:
    """A descriptor that holds the claim until it and all its copies are closed; None when somebody else has it."""
    descriptor = _open(path)
    if _locked(descriptor, fcntl.LOCK_EX):
        # Nobody else is here: what the file says is of the past.
        os.truncate(descriptor, 0)
        if not shared or _locked(descriptor, fcntl.LOCK_SH):
            return descriptor
    elif shared and _locked(descriptor, fcntl.LOCK_SH):
        return descriptor
    os.close(descriptor)
    return None


def note(path: Path, line: str) -> None:
    """Append `line` to the file of a held claim, for others to read."""
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")


def claimants(path: Path) -> list[str]:
    """The lines of those who have a claim; of a shared one also those who had it and are gone."""
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        what = f"cannot write {path.name}: {error.strerror}"
        raise ToolFailed(what, str(path.parent), "set SYMPH_RUNTIME_DIR to a folder that can be written") from error


def _locked(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
