"""What `state.json` says of a process, and how that changes when it starts, ends or is asked for again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["mark_ended", "mark_renewed", "mark_restarted", "mark_started"]


def mark_started(process: dict[str, Any], planned: Mapping[str, Any], now: float) -> None:
    """It runs, and is ready at once unless its checks have to say so; `began` stays that of its first start."""
    is_ready = not planned["checks"] and not any(check["role"] == "started" for check in planned["health"])
    process.update(phase="running", started=now, ready=is_ready, unready="", unhealthy="")
    process["began"] = process.get("began") or now


def mark_ended(process: dict[str, Any], status: int, now: float, limit: str) -> None:
    """It has ended with `status`; `limit` is what limits had to do with that."""
    phase = "done" if status == 0 else "failed"
    process.update(status=status, ended=now, ready=False, phase=phase, limit=limit)


def mark_restarted(process: dict[str, Any]) -> None:
    """Its program is started once more."""
    restarts, in_a_row = process["restarts"] + 1, process.get("in_a_row", 0) + 1
    process.update(restarts=restarts, in_a_row=in_a_row, status=None, ended=None)


def mark_renewed(process: dict[str, Any]) -> None:
    """Somebody wants it to start again: nothing that was before counts any more."""
    process.update(phase="waiting", is_again=True, restarts=-1, in_a_row=-1, began=None, is_overdue=False)
