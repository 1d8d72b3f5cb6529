"""`age` writes a time span as short as Symphony does."""

from __future__ import annotations

__all__ = ["age"]


def age(seconds: float) -> str:
    """`75` -> ``1m``, in Symphony's units: seconds, minutes, hours with a decimal, days and hours."""
    if seconds < 60:
        return f"{max(0, int(seconds))}s"
    if seconds < 3600:
        return f"{int(seconds // 60)}m"
    if seconds < 86400:
        return f"{seconds / 3600:.1f}h"
    return f"{int(seconds // 86400)}d{int(seconds % 86400 // 3600)}h"
