"""Assignment turns every `assign_to` and launch feature of an experiment into requests, selectors and tolerations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Literal

import msgspec

from symphony_charts.errors import PlacementError, Problem, SpecError
from symphony_charts.placement.assign.launch import add_launch_features
from symphony_charts.placement.assign.rules import Decision, decide
from symphony_charts.placement.assign.symphony_rules import decide_like_symphony
from symphony_charts.placement.fit.anti_affinity import with_anti_affinity
from symphony_charts.placement.pools.pool import Pools
from symphony_charts.spec.model import Experiment, PodSettings, Process
from symphony_charts.spec.pods import Pod, pods_of
from symphony_charts.spec.scheduling import Assignment, Placement, Toleration

__all__ = ["ANNOTATION", "SHARED", "apply", "exclusive_term", "settle"]

# Where the emitted pods say which pool was chosen. Outside of symph.dev, whose keys the chart alone may set.
ANNOTATION = "symphony-charts/assigned-to"
GROUP_LABEL = "symph.dev/group"
# What a process gets of a machine for its whole pod.
SHARED: tuple[Literal["cpu", "memory"], ...] = ("cpu", "memory")


def apply(experiment: Experiment, pools: Pools | None) -> tuple[Experiment, list[Decision]]:
    """Return the experiment with every `assign_to` resolved, and the decisions in order of declaration.

    What a process says itself (its own requests, GPUs, selectors) stays. Applying twice changes nothing. Raises
    SpecError with all wrong uses at once; whether everything fits is for `plan.check` to say.
    """
    features = msgspec.structs.replace(experiment.placement, pools=None, formula="allocatable")
    if features == Placement() and not any(map(_has_wishes, _processes(experiment))):
        return experiment, []
    problems: list[Problem] = []
    decisions: list[Decision] = []
    settled: dict[str, PodSettings] = {}
    for pod in pods_of(experiment).values():
        pod_decisions = _decide_pod(pod, experiment, pools, problems)
        decisions += pod_decisions.values()
        settled[pod.name] = _settle_pod(pod, pod_decisions)
    if problems:
        raise SpecError(problems)
    if decisions:
        experiment = _with_pods(experiment, settled)
    return add_launch_features(experiment, pools), decisions


def _processes(experiment: Experiment) -> Iterator[Process]:
    for group in experiment.groups.values():
        yield from group.processes.values()
    yield from experiment.processes.values()


def _has_wishes(process: Process) -> bool:
    if process.assign_to is not None or process.gpus:
        return True
    return any("/" in resource for resources in (process.requests, process.limits) for resource in resources)


def _decision_for(assignment: Assignment, experiment: Experiment, pools: Pools | None) -> Decision:
    if experiment.placement.formula == "symphony":
        if pools is None:
            raise SpecError.one("formula: symphony needs the node pools", "placement.pools", "give --pools FILE")
        return decide_like_symphony(assignment, pools)
    return decide(assignment, pools, wants_spot=experiment.placement.spot)


def settle(process: Process, decision: Decision) -> Process:
    """`process` with the decision's numbers; its own requests and limits win over them."""
    told = {"cpu": decision.cpu, "memory": decision.memory}
    requests = {name: value for name, value in told.items() if value is not None and name not in process.limits}
    limits = {"google.com/tpu": str(decision.tpus)} if decision.tpus else {}
    return msgspec.structs.replace(
        process,
        requests={**requests, **process.requests},
        pod_share=[name for name in SHARED if name in requests and name not in process.requests],
        limits={**limits, **process.limits},
        gpus=process.gpus or decision.gpus or 0,
        assign_to=None,
    )


def exclusive_term(pod: str) -> dict[str, object]:
    """Return the anti-affinity term that keeps every pod of the namespace but this group's own off the node."""
    selector = {"matchExpressions": [{"key": GROUP_LABEL, "operator": "NotIn", "values": [pod]}]}
    return {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}


def _decide_pod(pod: Pod, experiment: Experiment, pools: Pools | None, problems: list[Problem]) -> dict[str, Decision]:
    decisions: dict[str, Decision] = {}
    for name, process in pod.processes.items():
        if process.assign_to is None:
            continue
        path = f"{pod.path}.processes.{name}" if pod.is_group else pod.path
        try:
            decision = _decision_for(process.assign_to, experiment, pools)
        except (SpecError, PlacementError) as error:
            key = getattr(error, "at", "")
            problems.append(
                Problem(
                    what=error.what,
                    path=f"{path}.assign_to" + (f".{key}" if key.isidentifier() else ""),
                    next=error.next,
                )
            )
            continue
        label = f"{pod.name}/{name}" if pod.is_group else name
        decisions[name] = replace(decision, process=label)
    pools_named = {decision.pool for decision in decisions.values() if decision.pool}
    if len(pools_named) > 1:
        what = f"the processes of group {pod.name} are sent to different pools: {', '.join(sorted(pools_named))}"
        problems.append(Problem(what=what, path=pod.path, next="they share one pod, so they need one pool"))
    return decisions


def _settle_pod(pod: Pod, decisions: Mapping[str, Decision]) -> PodSettings:
    settings = pod.settings
    if not decisions:
        return settings
    processes = {
        name: settle(process, decisions[name]) if name in decisions else process
        for name, process in pod.processes.items()
    }
    record: PodSettings = processes[pod.name] if not pod.is_group else settings
    selector: dict[str, str] = {}
    tolerations: list[Toleration] = list(settings.tolerations)
    notes: dict[str, str] = {}
    overlay = settings.pod_overlay
    for decision in decisions.values():
        selector.update(decision.selector)
        tolerations += [toleration for toleration in decision.tolerations if toleration not in tolerations]
        if decision.is_exclusive:
            overlay = with_anti_affinity(overlay, exclusive_term(pod.name))
        if decision.pool:
            notes[ANNOTATION] = f"{decision.mode}: {decision.pool}"
    changes: dict[str, object] = {
        "node_selector": {**selector, **settings.node_selector},
        "tolerations": tolerations,
        "annotations": {**notes, **settings.annotations},
        "pod_overlay": overlay,
    }
    if pod.is_group:
        changes["processes"] = processes
    return msgspec.structs.replace(record, **changes)


def _with_pods(experiment: Experiment, settled: Mapping[str, PodSettings]) -> Experiment:
    return msgspec.structs.replace(
        experiment,
        groups={name: settled[name] for name in experiment.groups},
        processes={name: settled[name] for name in experiment.processes},
    )
