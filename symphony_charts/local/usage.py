"""What the processes of a session use, from /proc."""

from __future__ import annotations

import os
from pathlib import Path

from symphony_charts.system.processes import members

__all__ = ["session_usage"]

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def session_usage(session: int) -> tuple[float, int] | None:
    """Seconds of processor and bytes of resident memory of all processes in a session; None if there are none."""
    if session <= 0:
        return None
    seconds, memory, is_there = 0.0, 0, False
    for pid in members("", {session}, b"\0"):
        try:
            fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            # Fields 14, 15 and 24 of proc_pid_stat(5); the third is the first after the name.
            seconds += (int(fields[11]) + int(fields[12])) / _TICKS
            memory += int(fields[21]) * _PAGE
            is_there = True
        except (OSError, ValueError, IndexError):
            continue
    return (seconds, memory) if is_there else None
