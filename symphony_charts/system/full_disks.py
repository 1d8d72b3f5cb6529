"""A full disk is named where it is met: what is read there is of the past, and nothing can be started."""

from __future__ import annotations

import os
from pathlib import Path

from symphony_charts.errors import ToolFailed

__all__ = ["full_disk", "refuse_full_disk"]

# With less than this nothing sensible can be written down, in bytes.
_LEAST = 1 << 16


def full_disk(folder: Path) -> str:
    """Return what the disk of `folder`, or of its first existing parent, has run out of; empty if nothing."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        facts = os.statvfs(folder)
    except OSError:
        return ""
    blocks, files = (facts.f_bfree, facts.f_ffree) if os.geteuid() == 0 else (facts.f_bavail, facts.f_favail)
    if blocks * facts.f_frsize < _LEAST:
        return "no space is left"
    # Some file systems have no table of files, and count none.
    return "no more files can be made" if facts.f_files and not files else ""


def refuse_full_disk(folder: Path) -> None:
    """Raises ToolFailed where the disk of `folder` is full."""
    why = full_disk(folder)
    if why:
        step = f"make room, by symph local gc or elsewhere (df -h {folder}), or set SYMPH_STATE_DIR"
        raise ToolFailed(f"the disk is full: {why}", str(folder), step)
