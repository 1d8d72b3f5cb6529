"""The program keeps its own files on a machine in two folders: one for state, one for what is running."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

__all__ = ["runtime_dir", "state_dir"]


def state_dir() -> Path:
    """The folder of what outlives a reboot: $SYMPH_STATE_DIR, else ``symph`` in XDG's state folder; may be absent."""
    chosen = os.environ.get("SYMPH_STATE_DIR")
    if chosen:
        return Path(chosen)
    base = Path(os.environ.get("XDG_STATE_HOME", ""))
    # The XDG rules say that a relative path is to be ignored.
    return (base if base.is_absolute() else Path("~/.local/state").expanduser()) / "symph"


def runtime_dir() -> Path:
    """The folder of sockets and running state: $SYMPH_RUNTIME_DIR, else XDG's, else a per-user temporary folder.

    May not exist yet; whoever makes it uses mode 0700.
    """
    chosen = os.environ.get("SYMPH_RUNTIME_DIR")
    if chosen:
        return Path(chosen)
    base = Path(os.environ.get("XDG_RUNTIME_DIR", ""))
    if base.is_absolute() and os.access(base, os.W_OK):
        return base / "symph"
    return Path(tempfile.gettempdir()) / f"symph-{os.getuid()}"
