"""How far a run is: which processes may start, which never will, and whether it has reached its end.

Processes are what `state.json` says of them and planned what `plan.json` says; both are in slot order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

__all__ = ["hopeless", "mark_ended", "mark_renewed", "mark_restarted", "mark_started", "startable", "verdict"]

_ENDED = ("done", "failed", "stopped")


def startable(processes: Sequence[Mapping[str, Any]], planned: Sequence[Mapping[str, Any]]) -> list[int]:
    """The slots of the waiting processes that wait for nothing any more.

    One that is started again (`is_again`) waits only for what is on its way itself: it would come in the same order.
    """
    return [
        slot
        for slot, process in enumerate(processes)
        if process["phase"] == "waiting"
        and all(
            not _is_on_its_way(wait, processes) if process.get("is_again") else _is_met(wait, processes)
            for wait in planned[slot]["waits"]
        )
    ]


def hopeless(processes: Sequence[Mapping[str, Any]], planned: Sequence[Mapping[str, Any]]) -> list[int]:
    """The slots of the waiting processes that wait for one which has failed for good or will not start itself."""
    lost = {slot for slot, process in enumerate(processes) if process["phase"] in ("failed", "stopped")}
    found: list[int] = []
    while True:
        more = [
            slot
            for slot, process in enumerate(processes)
            if process["phase"] == "waiting"
            and not process.get("is_again")
            and slot not in lost
            and any(w["slot"] in lost for w in planned[slot]["waits"])
        ]
        if not more:
            return found
        found += more
        lost.update(more)


def verdict(
    processes: Sequence[Mapping[str, Any]], planned: Sequence[Mapping[str, Any]], aims: Sequence[int]
) -> Literal["finished", "ended"] | None:
    """`finished` when all `aims` have succeeded, `ended` when nothing more can come of it; None while it goes on.

    Services end with the last finite process; a run of services alone ends with the last of them.
    """
    if aims and all(processes[slot]["phase"] == "done" for slot in aims):
        return "finished"
    finite = [slot for slot, one in enumerate(planned) if not one["is_service"]] or range(len(processes))
    return "ended" if all(processes[slot]["phase"] in _ENDED for slot in finite) else None


def _is_met(wait: Mapping[str, Any], processes: Sequence[Mapping[str, Any]]) -> bool:
    other = processes[wait["slot"]]
    return bool(other["phase"] == "done" or (wait["until"] == "ready" and other["ready"]))


def _is_on_its_way(wait: Mapping[str, Any], processes: Sequence[Mapping[str, Any]]) -> bool:
    other = processes[wait["slot"]]
    if other.get("again") or other["phase"] in ("waiting", "starting", "backoff"):
        return True
    return bool(other["phase"] == "running" and not (wait["until"] == "ready" and other["ready"]))


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
