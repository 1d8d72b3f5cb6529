"""`tail_of` gives the last lines of a log, whatever its size."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["tail_of"]

_BYTES = 4096


def tail_of(log: Path, count: int) -> list[str]:
    """Return the last `count` lines that are not blank; none without a log."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return []
    return [line.rstrip() for line in text.split("\n") if line.strip()][-count:]
