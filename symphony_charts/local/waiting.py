"""A process that has not been let go waits for others: `unmet_waits` says for which, `wait_words` says it to users.

Processes are what `state.json` says of them and planned what `plan.json` says; both are in slot order. This module is
imported by `symph ps` and must stay light.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

__all__ = ["LONG_S", "is_met", "is_starting", "unmet_waits", "wait_words", "waiting_since"]

if TYPE_CHECKING:
    from symphony_charts.local.plan.records import LocalPlan, PlannedProcess, Wait
    from symphony_charts.local.run_state import ProcessState, RunState

# A longer wait is reported as a warning, in seconds.
LONG_S = 30.0


def is_met(wait: Wait, processes: Sequence[ProcessState]) -> bool:
    """Return True if a wait is over: its process is ready, or has ended well."""
    other = processes[wait.slot]
    return other.phase == "done" or (wait.until == "ready" and other.ready)


def is_starting(wait: Wait, processes: Sequence[ProcessState]) -> bool:
    """Return True if the awaited process is being started and has not come so far yet."""
    other = processes[wait.slot]
    if other.is_restart_asked or other.phase in ("waiting", "starting", "backoff"):
        return True
    return other.phase == "running" and not (wait.until == "ready" and other.ready)


def unmet_waits(slot: int, processes: Sequence[ProcessState], planned: Sequence[PlannedProcess]) -> list[Wait]:
    """Return the unmet waits of the process in `slot`; on a fresh start only those for processes that are starting."""
    is_fresh = processes[slot].is_fresh_start
    return [
        wait
        for wait in planned[slot].waits
        if (is_starting(wait, processes) if is_fresh else not is_met(wait, processes))
    ]


def wait_words(slot: int, state: RunState, plan: LocalPlan) -> str:
    """Return ``waits for replay-server:7003 of replay`` and the like; empty for a process that waits for nothing."""
    processes = state.processes
    if processes[slot].phase == "backoff" and processes[slot].held:
        return f"waits for {processes[slot].held}"
    if processes[slot].phase != "waiting":
        return ""
    waits = unmet_waits(slot, processes, plan.processes)
    if not waits:
        return ""
    more = f" and {len(waits) - 1} more" if len(waits) > 1 else ""
    return f"waits for {_awaited(waits[0], processes, plan)}{more}"


def waiting_since(process: ProcessState, state: RunState) -> float:
    """Return when its wait began: with the run, or at its last end."""
    return max(state.started, process.ended or 0.0)


def _awaited(wait: Wait, processes: Sequence[ProcessState], plan: LocalPlan) -> str:
    name = processes[wait.slot].path
    if wait.service:
        ports = plan.moved.get(wait.service) or (plan.ports[wait.service],)
        index = plan.processes[wait.slot].index
        return f"{wait.service}:{ports[min(index, len(ports) - 1)]} of {name}"
    return f"{name} to {'be ready' if wait.until == 'ready' else 'succeed'}"
