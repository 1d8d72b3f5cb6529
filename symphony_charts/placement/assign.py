"""Assign processes to node pools: selectors, tolerations, and fractions of a machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import msgspec

from symphony_charts.errors import PlacementError, Problem, SpecError
from symphony_charts.formats.data import maps, merge_overlay, sub
from symphony_charts.formats.quantity import amount_of
from symphony_charts.kinds.registry import KINDS
from symphony_charts.placement.allocatable import Amounts
from symphony_charts.placement.assign_rules import (
    DEVICE_TOLERATIONS,
    Decision,
    decide,
    decide_like_symphony,
    joint_pool,
    pool_selector,
)
from symphony_charts.placement.fit.podspec import REQUIRED
from symphony_charts.placement.pools.pool import Pool, Pools
from symphony_charts.spec.model import Experiment, PodSettings, Process
from symphony_charts.spec.pods import Pod, pods_of
from symphony_charts.spec.sources import Placement, Toleration, topology_of


def with_anti_affinity(overlay: Mapping[str, object], terms: Sequence[dict[str, object]]) -> dict[str, object]:
    """Return a pod's `overlay` with the required anti-affinity `terms` first; unchanged if it already has them."""
    own = maps(sub(overlay, "spec", "affinity", "podAntiAffinity"), REQUIRED)
    new = [term for term in terms if term not in own]
    if not new:
        return dict(overlay)
    return merge_overlay(overlay, {"spec": {"affinity": {"podAntiAffinity": {REQUIRED: [*new, *own]}}}})


# Launch features: spot, flex-start, reservation, compact placement, TPU slices, Kueue's topology, exclusive placement;
# and the tolerations that pods with GPUs or TPUs need. Sources: GKE's labels as in `pools.gke_node_pool`; Kueue's
# Topology Aware Scheduling; JobSet's exclusive placement. The queue's label belongs to the workload.

_PREFIX = "cloud.google.com/"
_EXPERIMENT_LABEL = "symph.dev/experiment"


def add_launch_features(experiment: Experiment, pools: Pools | None) -> Experiment:
    """Return the experiment with its launch features written into its pods; idempotent."""
    settled = {pod.name: _settle(pod, experiment, pools) for pod in pods_of(experiment).values()}
    annotations = dict(experiment.annotations)
    if experiment.placement.exclusive and _exclusive_annotation(experiment):
        annotations.setdefault(_exclusive_annotation(experiment), experiment.placement.exclusive)
    return msgspec.structs.replace(experiment, annotations=annotations, **_by_kind(experiment, settled))


def _settle(pod: Pod, experiment: Experiment, pools: Pools | None) -> PodSettings:
    settings, placement = pod.settings, experiment.placement
    selector, tolerations = _provisioning(placement)
    if any(process.gpus or _asks(process, "nvidia.com/gpu") for process in pod.processes.values()):
        tolerations.append(DEVICE_TOLERATIONS["nvidia.com/gpu"])
    if asks_for_tpu(pod):
        tolerations.append(DEVICE_TOLERATIONS["google.com/tpu"])
        selector |= _tpu_slice(placement, pools)
    if placement.compact:
        selector |= _compact(experiment, pools, settings.node_selector)
    annotations: dict[str, str] = {}
    if placement.topology and experiment.workload.gang != "native":  # native gangs set it in their PodGroup
        strength, label = topology_of(placement.topology)
        annotations[f"kueue.x-k8s.io/podset-{strength}-topology"] = label
    terms = [_exclusive(experiment)] if placement.exclusive and not _exclusive_annotation(experiment) else []
    return _with_rules(settings, selector, tolerations, annotations, terms)


def _with_rules(
    settings: PodSettings,
    selector: Mapping[str, str],
    tolerations: Iterable[Toleration],
    annotations: Mapping[str, str],
    anti_affinity: Sequence[dict[str, object]],
) -> PodSettings:
    """Return the settings of a pod with further rules; its own selector and annotations take precedence."""
    own = settings.tolerations
    return msgspec.structs.replace(
        settings,
        node_selector={**selector, **settings.node_selector},
        tolerations=[*own, *(each for each in dict.fromkeys(tolerations) if each not in own)],
        annotations={**annotations, **settings.annotations},
        pod_overlay=with_anti_affinity(settings.pod_overlay, anti_affinity),
    )


def asks_for_tpu(pod: Pod) -> bool:
    return any(_asks(process, "google.com/tpu") for process in pod.processes.values())


def _asks(process: Process, resource: str) -> bool:
    return resource in process.requests or resource in process.limits


def _provisioning(placement: Placement) -> tuple[dict[str, str], list[Toleration]]:
    selector: dict[str, str] = {}
    tolerations: list[Toleration] = []
    for wanted, label in ((placement.spot, "gke-spot"), (placement.flex_start, "gke-flex-start")):
        if wanted:
            selector[_PREFIX + label] = "true"
            tolerations.append(Toleration(key=_PREFIX + label, operator="Equal", value="true", effect="NoSchedule"))
    if placement.flex_start:
        tolerations.append(Toleration(key=f"{_PREFIX}gke-queued", operator="Exists", effect="NoSchedule"))
    if placement.reservation:
        selector[f"{_PREFIX}reservation-name"] = placement.reservation
    return selector, tolerations


def _tpu_slice(placement: Placement, pools: Pools | None) -> dict[str, str]:
    """Return the topology label, and the accelerator label if the pools leave only one."""
    if not placement.tpu_topology:
        return {}
    label = {f"{_PREFIX}gke-tpu-topology": placement.tpu_topology}
    candidates = pools.pools if pools else ()
    kinds = {pool.tpu.type for pool in candidates if pool.tpu and pool.tpu.topology == placement.tpu_topology}
    return label | ({f"{_PREFIX}gke-tpu-accelerator": kinds.pop()} if len(kinds) == 1 else {})


def _compact(experiment: Experiment, pools: Pools | None, chosen: Mapping[str, str]) -> dict[str, str]:
    """Return the placement policy label of the pools; without pools, a group named after the experiment."""
    close: list[Pool] = [pool for pool in pools.pools if pool.placement] if pools else []
    policies = {pool.placement for pool in close}
    if len(policies) == 1 and policies != {"compact"}:
        return {f"{_PREFIX}placement-policy-name": policies.pop()}
    if len(close) == 1:
        return dict(pool_selector(close[0]))
    if any(pool_selector(pool) and pool_selector(pool)[0] in chosen.items() for pool in close):
        return {}
    return {f"{_PREFIX}gke-placement-group": experiment.name}


def _exclusive_annotation(experiment: Experiment) -> str:
    """Return the annotation by which the workload's controller enforces exclusive placement; empty if it has none."""
    kind = KINDS.get(experiment.workload.kind)
    return kind.exclusive if kind else ""


def _exclusive(experiment: Experiment) -> dict[str, object]:
    selector = {
        "matchExpressions": [
            {"key": _EXPERIMENT_LABEL, "operator": "Exists"},
            {"key": _EXPERIMENT_LABEL, "operator": "NotIn", "values": [experiment.name]},
        ]
    }
    return {"labelSelector": selector, "topologyKey": experiment.placement.exclusive}


# Marks rendered pods with the chosen pool. Outside of symph.dev, whose keys only the chart may set.
ANNOTATION = "symphony-charts/assigned-to"


def apply(experiment: Experiment, pools: Pools | None) -> tuple[Experiment, list[Decision]]:
    """Return the experiment with every `assign_to` resolved, and the decisions in order of declaration.

    Explicit settings of a process (requests, GPUs, selectors) are kept. Idempotent. Raises SpecError with all wrong
    uses at once; the plan checks if everything fits.
    """
    problems: list[Problem] = []
    decisions: list[Decision] = []
    settled: dict[str, PodSettings] = {}
    for pod in pods_of(experiment).values():
        pod_decisions = _decide_pod(pod, experiment, pools, problems)
        decisions += pod_decisions.values()
        settled[pod.name] = _settle_pod(pod, pod_decisions, experiment.name)
    if problems:
        raise SpecError(problems)
    if decisions:
        experiment = msgspec.structs.replace(experiment, **_by_kind(experiment, settled))
    return add_launch_features(experiment, pools), decisions


def _by_kind(experiment: Experiment, settled: Mapping[str, PodSettings]) -> dict[str, dict[str, PodSettings]]:
    """Return the settled pods as the fields `groups` and `processes` of an experiment."""
    return {
        "groups": {name: settled[name] for name in experiment.groups},
        "processes": {name: settled[name] for name in experiment.processes},
    }


def _settle_process(process: Process, decision: Decision) -> Process:
    """Return `process` with the decision's numbers; its own requests and limits take precedence."""
    amounts = {"cpu": decision.cpu, "memory": decision.memory}
    requests = {name: value for name, value in amounts.items() if value is not None and name not in process.limits}
    limits = {"google.com/tpu": str(decision.tpus)} if decision.tpus else {}
    return msgspec.structs.replace(
        process,
        requests={**requests, **process.requests},
        pod_share=[name for name in decision.shared if name in requests and name not in process.requests],
        limits={**limits, **process.limits},
        gpus=process.gpus or decision.gpus or 0,
        assign_to=None,
    )


def exclusive_terms(pod: str, experiment: str) -> list[dict[str, object]]:
    """Return the anti-affinity that keeps all pods but those of this group off its nodes, within the namespace.

    Another experiment may have a group of the same name, so both must match. `experiment` may still be unknown (empty).
    """
    return [
        {
            "labelSelector": {"matchExpressions": [{"key": key, "operator": "NotIn", "values": [name]}]},
            "topologyKey": "kubernetes.io/hostname",
        }
        for key, name in (("symph.dev/group", pod), (_EXPERIMENT_LABEL, experiment))
        if name
    ]


def _decide_pod(pod: Pod, experiment: Experiment, pools: Pools | None, problems: list[Problem]) -> dict[str, Decision]:
    decisions: dict[str, Decision] = {}
    placement = experiment.placement
    wishes = {name: process.assign_to for name, process in pod.processes.items() if process.assign_to is not None}
    # Processes that leave the pool open follow the others of their group, or choose one together.
    together = joint_pool(wishes.values(), pools, wants_spot=placement.spot) if len(wishes) > 1 else ""
    for name, wish in wishes.items():
        path = f"{pod.path}.processes.{name}" if pod.is_group else pod.path
        try:
            if placement.formula == "symphony":
                decision = decide_like_symphony(wish, pools)
            else:
                decision = decide(wish, pools, wants_spot=placement.spot, group_pool=together)
        except (SpecError, PlacementError) as error:
            key = getattr(error, "at", "")
            where = f"{path}.assign_to" + (f".{key}" if key.isidentifier() else "")
            problems.append(Problem(what=error.what, path=where, next=error.next))
            continue
        decisions[name] = replace(decision, process=f"{pod.name}/{name}" if pod.is_group else name)
    pools_named = {decision.pool for decision in decisions.values() if decision.pool}
    if len(pools_named) > 1:
        what = f"the processes of group {pod.name} ask for different pools: {', '.join(sorted(pools_named))}"
        problems.append(Problem(what=what, path=pod.path, next="give them the same pool: they share one pod"))
    return decisions


def _settle_pod(pod: Pod, decisions: Mapping[str, Decision], experiment: str) -> PodSettings:
    settings = pod.settings
    if not decisions:
        return settings
    processes = {
        name: _settle_process(process, decisions[name]) if name in decisions else process
        for name, process in pod.processes.items()
    }
    settings = msgspec.structs.replace(settings, processes=processes) if pod.is_group else processes[pod.name]
    chosen = list(decisions.values())
    assigned = [f"{decision.mode}: {decision.pool}" for decision in chosen if decision.pool]
    return _with_rules(
        settings,
        {key: value for decision in chosen for key, value in decision.selector},
        [toleration for decision in chosen for toleration in decision.tolerations],
        {ANNOTATION: assigned[-1]} if assigned else {},
        exclusive_terms(pod.name, experiment) if any(decision.is_exclusive for decision in chosen) else [],
    )


# A process that is assigned to a machine gets the resources of its whole pod; the requests of the pod's other
# containers, from the spec, an overlay or defaults, are subtracted, so that the pod never exceeds its share.

_UNITS = {"cpu": ("m", 1), "memory": ("Mi", 2**20)}


def has_machine_fractions(experiment: Experiment) -> bool:
    """Return True if a process still holds the whole share of its pod."""
    return any(process.pod_share for pod in pods_of(experiment).values() for process in pod.processes.values())


def without_machine_fractions(experiment: Experiment) -> Experiment:
    """Return the experiment without the requests of processes that hold the share of their pod."""
    emptied = {
        pod.name: {name: _asking(each, dict.fromkeys(each.pod_share, "0")) for name, each in pod.processes.items()}
        for pod in pods_of(experiment).values()
    }
    return _with_processes(experiment, emptied)


def resolve_machine_fractions(experiment: Experiment, beside: Mapping[str, Amounts]) -> Experiment:
    """Return the experiment with every share reduced by the requests `beside` it in its pod, by group.

    Processes that share a pod divide the rest in the same proportions. Raises SpecError if nothing is left.
    """
    problems: list[Problem] = []
    settled = {
        pod.name: _shared(pod, beside.get(pod.name, {}), problems) if beside.get(pod.name) else dict(pod.processes)
        for pod in pods_of(experiment).values()
    }
    if problems:
        raise SpecError(problems)
    return _with_processes(experiment, settled)


def _shared(pod: Pod, beside: Amounts, problems: list[Problem]) -> dict[str, Process]:
    processes = dict(pod.processes)
    for resource, (unit, size) in _UNITS.items():
        shares = {
            name: amount_of(resource, process.requests[resource])
            for name, process in pod.processes.items()
            if resource in process.pod_share
        }
        whole, taken = sum(shares.values()), beside.get(resource, 0)
        if not shares or not taken:
            continue
        if taken >= whole:
            what = f"the other processes of this pod request all {resource} of the share of {', '.join(shares)}"
            problems.append(Problem(what=what, path=pod.path, next="request less there, or a larger share"))
            continue
        for name, share in shares.items():
            left = share * (whole - taken) // whole // size
            processes[name] = _asking(processes[name], {resource: f"{left}{unit}"})
    return processes


def _asking(process: Process, requests: Mapping[str, str]) -> Process:
    return msgspec.structs.replace(process, requests={**process.requests, **requests}) if requests else process


def _with_processes(experiment: Experiment, settled: Mapping[str, Mapping[str, Process]]) -> Experiment:
    pods: dict[str, PodSettings] = {}
    for name, given in settled.items():
        processes = {
            key: msgspec.structs.replace(process, pod_share=[]) if process.pod_share else process
            for key, process in given.items()
        }
        group = experiment.groups.get(name)
        pods[name] = processes[name] if group is None else msgspec.structs.replace(group, processes=processes)
    return msgspec.structs.replace(experiment, **_by_kind(experiment, pods))
