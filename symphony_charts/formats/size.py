"""Amounts of bytes as people read them."""

from __future__ import annotations

__all__ = ["size"]


def size(count: float) -> str:
    """Return a number of bytes as ``12 B``, ``3.4 KiB``, ``1.2 GiB``."""
    if count < 1024:
        return f"{count:.0f} B"
    for unit in ("KiB", "MiB", "GiB"):
        count /= 1024
        # What would be shown as 1024.0 belongs to the next unit.
        if round(count, 1) < 1024:
            return f"{count:.1f} {unit}"
    return f"{count / 1024:.1f} TiB"
