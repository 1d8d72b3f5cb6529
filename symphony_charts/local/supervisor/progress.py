"""`startable`, `hopeless` and `verdict` say which processes may start, which never will, and when a run has ended.

Processes are what `state.json` says of them and planned what `plan.json` says; both are in slot order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

__all__ = ["hopeless", "startable", "verdict"]

_ENDED = ("done", "failed", "stopped")


def startable(processes: Sequence[Mapping[str, Any]], planned: Sequence[Mapping[str, Any]]) -> list[int]:
    """The slots of the waiting processes that wait for nothing any more.

    One that is started afresh (`is_fresh_start`) waits only for what is on its way itself, in that order.
    """
    return [
        slot
        for slot, process in enumerate(processes)
        if process["phase"] == "waiting"
        and all(
            not _is_on_its_way(wait, processes) if process.get("is_fresh_start") else _is_met(wait, processes)
            for wait in planned[slot]["waits"]
        )
    ]


def hopeless(processes: Sequence[Mapping[str, Any]], planned: Sequence[Mapping[str, Any]]) -> list[int]:
    """The slots of the waiting processes that wait for one which has failed for good or will not start itself."""
    lost = {slot for slot, process in enumerate(processes) if process["phase"] in ("failed", "stopped")}
    given_up: list[int] = []
    while True:
        more = [
            slot
            for slot, process in enumerate(processes)
            if process["phase"] == "waiting"
            and not process.get("is_fresh_start")
            and slot not in lost
            and any(wait["slot"] in lost for wait in planned[slot]["waits"])
        ]
        if not more:
            return given_up
        given_up += more
        lost.update(more)


def verdict(
    processes: Sequence[Mapping[str, Any]], planned: Sequence[Mapping[str, Any]], aims: Sequence[int]
) -> Literal["finished", "ended"] | None:
    """`finished` when all `aims` have succeeded, `ended` when nothing more can come of it; None while it goes on.

    Services end with the last finite process; a run of services alone ends with the last of them.
    """
    if aims and all(processes[slot]["phase"] == "done" for slot in aims):
        return "finished"
    finite = [slot for slot, process in enumerate(planned) if not process["is_service"]] or range(len(processes))
    return "ended" if all(processes[slot]["phase"] in _ENDED for slot in finite) else None


def _is_met(wait: Mapping[str, Any], processes: Sequence[Mapping[str, Any]]) -> bool:
    other = processes[wait["slot"]]
    return bool(other["phase"] == "done" or (wait["until"] == "ready" and other["ready"]))


def _is_on_its_way(wait: Mapping[str, Any], processes: Sequence[Mapping[str, Any]]) -> bool:
    other = processes[wait["slot"]]
    if other.get("is_restart_asked") or other["phase"] in ("waiting", "starting", "backoff"):
        return True
    return bool(other["phase"] == "running" and not (wait["until"] == "ready" and other["ready"]))
