"""What a dry run tells of a run that does not start, in words and as data, without the values of variables."""

from __future__ import annotations

from collections.abc import Sequence

from symphony_charts.local.plan.records import LocalPlan
from symphony_charts.local.plan.scripts import quote
from symphony_charts.local.restart_changed import Change

__all__ = ["changes_text", "describe", "plan_data", "restart_data"]


def plan_data(plan: LocalPlan) -> dict[str, object]:
    """Return the plan of a run that would start, as data."""
    return {
        "name": plan.experiment,
        "address": plan.base_address,
        "ports": {**plan.ports, **{service: ports[0] for service, ports in plan.moved.items()}},
        "processes": [
            {
                "name": f"{process.group}/{process.name}" if process.group else process.name,
                "argv": list(process.argv),
                "gpus": list(process.gpus),
                "limits": [
                    {"resource": limit.resource, "said": limit.said, "by": limit.by} for limit in process.limits
                ],
            }
            for process in plan.processes
        ],
        "notes": list(plan.notes),
        "dryRun": True,
    }


def restart_data(plan: LocalPlan, changes: Sequence[Change]) -> dict[str, object]:
    """Return the processes that would restart, as data."""
    restarts = [{"name": change.name, "reason": change.reason} for change in changes]
    return {"name": plan.experiment, "restarts": restarts, "notes": list(plan.notes), "dryRun": True}


def changes_text(plan: LocalPlan, changes: Sequence[Change]) -> str:
    """Return the processes that would restart, as text."""
    lines = [f"restart {change.name}: {change.reason}" for change in changes] or ["nothing has changed"]
    return "\n".join([*lines, *(f"note: {note}" for note in plan.notes)]) + "\n"


def describe(plan: LocalPlan) -> str:
    """Return the plan of a run as text, without the values of variables."""
    lines = [f"{plan.experiment}  at {plan.base_address}"]
    for process in plan.processes:
        name = f"{process.group}/{process.name}" if process.group else process.name
        given = f"  (GPUs {', '.join(process.gpus)})" if process.gpus else ""
        limits = ", ".join(f"{limit.resource} {limit.said} by {limit.by}" for limit in process.limits)
        given += f"  (at most {limits})" if limits else ""
        lines.append(f"  {name}: {' '.join(map(_quote_if_needed, process.argv))}{given}")
    return "\n".join([*lines, *(f"note: {note}" for note in plan.notes)]) + "\n"


def _quote_if_needed(argument: str) -> str:
    return (
        argument if argument and all(char.isalnum() or char in "-_./=:,@%+" for char in argument) else quote(argument)
    )
