"""Every check walks the same list of processes, each with its path in the experiment."""

from __future__ import annotations

from typing import NamedTuple

from symphony_charts.spec.model import Experiment, Process
from symphony_charts.spec.pods import ProcessRef

__all__ = ["ProcessEntry", "entries_of"]


class ProcessEntry(NamedTuple):
    """A process with its `ref` and its `path` in the experiment; `in_group` if it shares its pod."""

    ref: ProcessRef
    path: str
    process: Process
    in_group: bool


def entries_of(experiment: Experiment) -> list[ProcessEntry]:
    """Return all processes, groups first."""
    grouped = [
        ProcessEntry(ProcessRef(group, name), f"groups.{group}.processes.{name}", process, True)
        for group, settings in experiment.groups.items()
        for name, process in settings.processes.items()
    ]
    lone = [
        ProcessEntry(ProcessRef(name, name), f"processes.{name}", process, False)
        for name, process in experiment.processes.items()
    ]
    return grouped + lone
