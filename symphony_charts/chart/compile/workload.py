"""The settings of an experiment's workload as values, and what of them cannot be."""

from __future__ import annotations

from collections.abc import Iterator

from symphony_charts.chart.render.values import Values, scalar
from symphony_charts.errors import Problem
from symphony_charts.kinds.appwrapper import MAX_POD_SETS
from symphony_charts.kinds.combinations import faults_of
from symphony_charts.kinds.registry import KINDS
from symphony_charts.placement.assign.launch import topology_of
from symphony_charts.spec.checks.dijob import pods_in_order
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import pods_of
from symphony_charts.spec.workload import AppwrapperSettings, ArgoSettings, DijobSettings, Workload

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
    for path, why in faults_of(workload.kind, settings, workload.scheduler_name or ""):
        yield Problem(what=why, path=_SPEC_PATHS.get(path, path))
    if workload.jobset.max_restarts < 0:
        what = f"a JobSet cannot begin again {workload.jobset.max_restarts} times"
        yield Problem(what=what, path="workload.jobset.max_restarts", next="0 means not at all")
    topology = experiment.placement.topology
    if workload.gang == "native" and topology and topology_of(topology)[0] != "required":
        what = "Kubernetes' own gangs require nearness or do not know it"
        yield Problem(what=what, path="placement.topology", next="say `required:`, or use gang kueue")
    groups = [pod for pod in pods_of(experiment).values() if pod.is_finite]
    if workload.kind == "appwrapper" and workload.appwrapper.version == "v1beta2" and len(groups) > MAX_POD_SETS:
        what = f"an AppWrapper holds at most {MAX_POD_SETS} groups that end, not {len(groups)}"
        yield Problem(what=what, path="workload.kind", next="put processes into fewer groups, or use `jobset`")


def compile_workload(experiment: Experiment) -> Values:
    """The values of ``workload``: what the spec says, without what it does not."""
    workload = experiment.workload
    values: Values = {"kind": workload.kind, "gang": workload.gang}
    further: Values = {"queue": workload.queue, "gangScope": workload.gang_scope, "gangVersion": workload.gang_version}
    if workload.gang == "native" and experiment.placement.topology:
        further["gangTopology"] = topology_of(experiment.placement.topology)[1]
    own: Values = {"queuePriority": workload.queue_priority, "priority": workload.priority, "order": _order(experiment)}
    own |= _of_kind(workload)
    return values | {key: value for key, value in (further | own).items() if value is not None}


def _order(experiment: Experiment) -> list[str] | None:
    """The groups by rank, where ranks are told and names alone do not give them."""
    nodes = [pod.name for pod in pods_in_order(experiment) if pod.is_finite]
    has_ranks = experiment.compat is not None or experiment.workload.kind == "dijob"
    return nodes if has_ranks and nodes != sorted(nodes) else None


def _of_kind(workload: Workload) -> Values:
    """What one kind of workload alone reads; nothing where it is as it is by itself."""
    appwrapper: Values = {"version": workload.appwrapper.version, "annotations": dict(workload.appwrapper.annotations)}
    plugins = {name: list(arguments) for name, arguments in workload.volcano.plugins.items()}
    restarts = workload.jobset.max_restarts
    return {
        "jobset": {"maxRestarts": restarts} if restarts else None,
        "appwrapper": appwrapper if workload.appwrapper != AppwrapperSettings() else None,
        "volcano": {"plugins": plugins} if plugins else None,
        "dijob": _of_dijob(workload.dijob) or None,
        "argo": _of_argo(workload.argo) or None,
    }


def _of_argo(argo: ArgoSettings) -> Values:
    values: Values = {
        "schedules": list(argo.schedules),
        "timezone": argo.timezone,
        "needs": {name: list(after) for name, after in argo.needs.items()},
        "retries": argo.retries,
        "parameters": list(argo.parameters),
        "serviceAccount": argo.service_account,
    }
    if argo.schedules:
        values["concurrency"] = argo.concurrency
    return {key: value for key, value in values.items() if value} | ({} if argo.submit else {"submit": False})


def _of_dijob(settings: DijobSettings) -> Values:
    values: Values = {
        "operator": settings.operator,
        "cleanPodPolicy": settings.clean_pod_policy,
        "tasks": dict(settings.tasks),
        "group": settings.group,
        "priority": settings.priority,
        "topology": settings.topology,
        "parallelWorkers": settings.parallel_workers,
        "maxReplicas": settings.max_replicas,
    }
    usual: Values = {"operator": "v1.1", "cleanPodPolicy": "Running", "priority": "normal", "topology": "star"}
    usual |= {"parallelWorkers": 1, "tasks": {}}
    return {key: value for key, value in values.items() if value is not None and value != usual.get(key)}
