"""The settings of an experiment's workload as values, and what of them cannot be."""

from __future__ import annotations

from collections.abc import Iterator

from symphony_charts.chart.render.values import Values, scalar
from symphony_charts.errors import Problem
from symphony_charts.kinds.registry import KINDS
from symphony_charts.kinds.table import settings_faults
from symphony_charts.placement.assign.launch import topology_of
from symphony_charts.spec.checks.dijob import pods_in_order
from symphony_charts.spec.model import Experiment

__all__ = ["compile_workload", "workload_faults"]

# What the settings of a workload are called in a spec.
_SPEC_PATHS = {
    "workload.gangVersion": "workload.gang_version",
    "workload.queuePriority": "workload.queue_priority",
    "defaults.schedulerName": "workload.scheduler_name",
}


def workload_faults(experiment: Experiment) -> Iterator[Problem]:
    """What the kind of workload and its gang cannot do, with paths in the spec."""
    workload = experiment.workload
    if workload.kind not in KINDS:
        kinds = ", ".join(f"`{name}`" for name in KINDS)
        yield Problem(what=f'no chart for workload kind "{workload.kind}"', path="workload.kind", next=f"use {kinds}")
    settings = {key: scalar(value) for key, value in compile_workload(experiment).items() if isinstance(value, str)}
    for fault in settings_faults(workload.kind, settings, workload.scheduler_name or ""):
        yield fault.moved_to(_SPEC_PATHS.get(fault.path, fault.path))
    if workload.jobset.max_restarts < 0:
        what = f"a JobSet cannot begin again {workload.jobset.max_restarts} times"
        yield Problem(what=what, path="workload.jobset.max_restarts", next="0 means not at all")
    topology = experiment.placement.topology
    if workload.gang == "native" and topology and topology_of(topology)[0] != "required":
        what = "Kubernetes' own gangs require nearness or do not know it"
        yield Problem(what=what, path="placement.topology", next="say `required:`, or use gang kueue")
    if workload.kind in KINDS:
        yield from KINDS[workload.kind].spec_faults(experiment)


def compile_workload(experiment: Experiment) -> Values:
    """The values of ``workload``: what the spec says, without what it does not."""
    workload = experiment.workload
    values: Values = {"kind": workload.kind, "gang": workload.gang}
    further: Values = {"queue": workload.queue, "gangScope": workload.gang_scope, "gangVersion": workload.gang_version}
    if workload.gang == "native" and experiment.placement.topology:
        further["gangTopology"] = topology_of(experiment.placement.topology)[1]
    own: Values = {"queuePriority": workload.queue_priority, "priority": workload.priority, "order": _order(experiment)}
    own |= {name: kind.settings(workload) or None for name, kind in KINDS.items()}
    return values | {key: value for key, value in (further | own).items() if value is not None}


def _order(experiment: Experiment) -> list[str] | None:
    """The groups by rank, where ranks are told and names alone do not give them."""
    nodes = [pod.name for pod in pods_in_order(experiment) if pod.is_finite]
    kind = KINDS.get(experiment.workload.kind)
    has_ranks = experiment.compat is not None or (kind is not None and kind.has_ranks)
    return nodes if has_ranks and nodes != sorted(nodes) else None
