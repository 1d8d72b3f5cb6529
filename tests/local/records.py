"""Records of runs for tests: planned processes and process states, with defaults for unset fields."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

from msgspec.structs import replace

from symphony_charts.local.plan.records import LocalPlan, PlannedProcess, Wait
from symphony_charts.local.run_state import ProcessState, RunState
from symphony_charts.local.supervisor.decisions import Action, Event, Transition


def planned(*waits: int, slot: int = 0, **more: Any) -> PlannedProcess:
    """Return a finite process that waits until those in the slots `waits` are ready, and whose failure ends its run."""
    known: dict[str, Any] = {
        "slot": slot,
        "name": "p",
        "group": "",
        "pod": "p",
        "process": "p",
        "index": 0,
        "is_step": False,
        "is_service": False,
        "argv": ("true",),
        "cwd": "/",
        "tty": False,
        "address": "127.0.0.1",
        "waits": tuple(Wait(slot=other, until="ready") for other in waits),
        "checks": (),
        "health": (),
        "restart": "never",
        "retries": 0,
        "counts_tries": False,
        "on_failure": "stop",
        "grace_s": 30,
        "deadline_s": None,
        "log_bytes": 0,
        "gpus": (),
        "enter": (),
        "limits": (),
        "scope": (),
        "binds": (),
        "spec_path": "processes.p",
        "digest": "",
    }
    return PlannedProcess(**{**known, **more})


def plan_of(*processes: PlannedProcess, **more: Any) -> LocalPlan:
    """Return a plan of these processes with slots assigned; its aim is the first."""
    known: dict[str, Any] = {
        "experiment": "exp",
        "processes": tuple(replace(process, slot=slot) for slot, process in enumerate(processes)),
        "done_when": (0,) if processes else (),
        "folders": (),
        "checkouts": (),
        "binds": (),
        "has_namespace": False,
        "base_address": "127.0.0.1",
        "ports": {},
        "moved": {},
        "is_sharing_gpus": False,
        "caller": {},
        "labels": {},
        "notes": (),
    }
    return LocalPlan(**{**known, **more})


def process_state(phase: str = "running", slot: int = 0, **more: Any) -> ProcessState:
    """Return the state of a process; it is ready if running."""
    known: dict[str, Any] = {"name": "p", "group": "", "pod": "p", "ready": phase == "running", "restarts": 0}
    return ProcessState(**{"slot": slot, "phase": phase, "status": None, **known, **more})


def run_state(processes: Sequence[ProcessState], phase: Any = "running", **more: Any) -> RunState:
    """Return the state of a run with these processes, with slots assigned."""
    in_slots = [replace(process, slot=slot) for slot, process in enumerate(processes)]
    return RunState(phase=phase, started=0.0, processes=in_slots, **more)


def transition(
    state: RunState, live: Set[int], event: Event, plan: LocalPlan, now: float
) -> tuple[RunState, list[Action]]:
    """Return the state after `event`, and the actions that follow."""
    step = Transition(state, frozenset(live), plan, now)
    event(step)
    return step.state, step.actions
