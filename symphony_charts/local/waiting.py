"""A process that has not been let go waits for others: `unmet` says for which, `wait_words` says it to users.

Processes are what `state.json` says of them and planned what `plan.json` says; both are in slot order. This module is
imported by `symph ps` and must stay light.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["LONG_S", "is_met", "is_on_its_way", "unmet", "wait_words", "waiting_since"]

# Whoever waits longer is told about as a warning, in seconds.
LONG_S = 30.0
Process = Mapping[str, Any]


def is_met(wait: Mapping[str, Any], processes: Sequence[Process]) -> bool:
    """Whether what is waited for has come: its process is ready, or has ended well."""
    other = processes[wait["slot"]]
    return bool(other["phase"] == "done" or (wait["until"] == "ready" and other["ready"]))


def is_on_its_way(wait: Mapping[str, Any], processes: Sequence[Process]) -> bool:
    """Whether the process that is waited for is being started, and has not come so far yet."""
    other = processes[wait["slot"]]
    if other.get("is_restart_asked") or other["phase"] in ("waiting", "starting", "backoff"):
        return True
    return bool(other["phase"] == "running" and not (wait["until"] == "ready" and other["ready"]))


def unmet(slot: int, processes: Sequence[Process], planned: Sequence[Process]) -> list[Mapping[str, Any]]:
    """What the process in `slot` waits for; one that is started afresh only for what is on its way, in that order."""
    is_fresh = bool(processes[slot].get("is_fresh_start"))
    return [
        wait
        for wait in planned[slot]["waits"]
        if (is_on_its_way(wait, processes) if is_fresh else not is_met(wait, processes))
    ]


def wait_words(slot: int, state: Mapping[str, Any], plan: Mapping[str, Any]) -> str:
    """Return ``waits for replay-server:7003 of replay`` and the like; empty for a process that waits for nothing."""
    processes = state["processes"]
    if processes[slot]["phase"] == "backoff" and processes[slot].get("held"):
        return f"waits for {processes[slot]['held']}"
    if processes[slot]["phase"] != "waiting":
        return ""
    waits = unmet(slot, processes, plan["processes"])
    if not waits:
        return ""
    more = f" and {len(waits) - 1} more" if len(waits) > 1 else ""
    return f"waits for {_awaited(waits[0], processes, plan)}{more}"


def waiting_since(process: Process, state: Mapping[str, Any]) -> float:
    """When it began to wait: with the run, or when it ended to be started again."""
    return float(max(state["started"], process.get("ended") or 0.0))


def _awaited(wait: Mapping[str, Any], processes: Sequence[Process], plan: Mapping[str, Any]) -> str:
    other, service = processes[wait["slot"]], wait.get("service", "")
    name = f"{other['group']}/{other['name']}" if other["group"] else other["name"]
    if service:
        ports = plan["moved"].get(service) or [plan["ports"][service]]
        index = plan["processes"][wait["slot"]]["index"]
        return f"{service}:{ports[min(index, len(ports) - 1)]} of {name}"
    return f"{name} to {'be ready' if wait['until'] == 'ready' else 'succeed'}"
