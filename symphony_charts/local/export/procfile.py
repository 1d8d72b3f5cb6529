"""honcho, foreman, overmind and their like run a plan from a Procfile.

Source of the format: Heroku's documentation, "The Procfile"; names are limited to what all of these runners read.
"""

from __future__ import annotations

from symphony_charts.local.export.plain_files import Export, command_of, label_of, mount_notes, plain_files
from symphony_charts.local.plan.records import LocalPlan
from symphony_charts.local.plan.scripts import check_path

__all__ = ["to_procfile"]


def to_procfile(plan: LocalPlan, folder: str) -> Export:
    """The files that `honcho start` runs from the absolute path `folder`; each process waits for others by itself."""
    lines = [f"{label_of(process)}: exec {command_of(process, folder)}" for process in plan.processes]
    files = {
        **plain_files(plan, folder, waits=True, lingers=True),
        "Procfile": ("\n".join([*lines, ""]).encode(), 0o600),
    }
    # Of an earlier start: those that wait would take it for an end in this one.
    clean = f"rm -f {check_path(folder)}/p/*/exit"
    return Export(
        main="Procfile",
        files=files,
        notes=mount_notes(plan),
        start=f"{clean}; honcho -f {check_path(folder)}/Procfile start",
    )
