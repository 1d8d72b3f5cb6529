"""process-compose runs a plan from one file; it knows order, readiness, restarts and grace periods.

Source of the format: F1bonacc1/process-compose, its documentation and its schema. Expansion of variables is switched
off in the file, and Go templates have nothing to expand: the file holds paths and names of ours alone.
"""

from __future__ import annotations

import math

from symphony_charts.formats.yaml_write import dump
from symphony_charts.local.export.plain_files import (
    Export,
    check_command,
    command_of,
    label_of,
    mount_notes,
    plain_files,
)
from symphony_charts.local.plan.records import Check, LocalPlan, PlannedProcess
from symphony_charts.local.plan.scripts import check_path

__all__ = ["to_process_compose"]

_RESTARTS = {"always": "always", "on-failure": "on_failure", "never": "no"}


def to_process_compose(plan: LocalPlan, folder: str) -> Export:
    """Return the files that `process-compose up` runs from the absolute path `folder`."""
    document = {
        "version": "0.5",
        "is_strict": True,
        "disable_env_expansion": True,
        "shell": {"shell_command": "/bin/sh", "shell_argument": "-c"},
        "processes": {label_of(process): _process(plan, process, folder) for process in plan.processes},
    }
    main = "process-compose.yaml"
    files = {**plain_files(plan, folder, waits=False), main: (dump(document).encode(), 0o600)}
    start = f"process-compose up -f {check_path(folder)}/{main}"
    return Export(main=main, files=files, notes=mount_notes(plan), start=start)


def _process(plan: LocalPlan, process: PlannedProcess, folder: str) -> dict[str, object]:
    availability: dict[str, object] = {"restart": _RESTARTS[process.restart]}
    if process.restart != "never":
        availability["backoff_seconds"] = 1
    if process.restart == "on-failure":
        availability["max_restarts"] = process.retries
    if process.slot in plan.done_when and len(plan.done_when) == 1:
        availability["exit_on_end"] = True
    entry: dict[str, object] = {
        "command": f"exec {command_of(process, folder)}",
        "availability": availability,
        "shutdown": {"signal": 15, "timeout_seconds": process.grace_s},
        "log_location": f"{folder}/p/{process.slot}/log",
    }
    if process.tty:
        entry["is_tty"] = True
    if process.waits:
        entry["depends_on"] = {
            label_of(plan.processes[wait.slot]): {"condition": _condition(plan.processes[wait.slot], wait.until)}
            for wait in process.waits
        }
    if process.checks:
        entry["readiness_probe"] = _probe(process.checks)
    return entry


def _condition(other: PlannedProcess, until: str) -> str:
    if until == "done":
        return "process_completed_successfully"
    return "process_healthy" if other.checks else "process_started"


def _probe(checks: tuple[Check, ...]) -> dict[str, object]:
    """Combine all checks of a process in one command: there is one probe only, and its times are whole seconds."""
    first = checks[0]
    return {
        "exec": {"command": " && ".join(map(check_command, checks))},
        "initial_delay_seconds": math.ceil(first.initial_delay_s),
        "period_seconds": 1 if first.automatic else max(1, math.ceil(first.period_s)),
        "timeout_seconds": max(1, math.ceil(first.timeout_s)),
        "failure_threshold": 1000,
    }
