"""Times as options take them: how long (``5m``), and since when (``5m`` ago, or a date)."""

from __future__ import annotations

import argparse
import re
import time
from datetime import datetime

__all__ = ["moment", "seconds"]

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def seconds(text: str) -> float:
    """``90``, ``90s``, ``5m``, ``1h`` or ``2d`` in seconds; argparse turns the ValueError into wrong usage."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", text, re.ASCII)
    if match is None:
        raise ValueError(f"{text!r} is no time")
    return float(match[1]) * _UNITS[match[2]]


def moment(text: str) -> float | None:
    """Seconds since 1970 of so long ago (`seconds`), or of a time such as 2026-03-01T12:00:00Z; None for ``0``."""
    try:
        ago = seconds(text)
    except ValueError:
        try:
            return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is no time: write 10m, 2h, or 2026-03-01T12:00:00Z") from None
    return time.time() - ago if ago else None
