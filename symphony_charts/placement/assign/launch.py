"""Launch features of `placement` become what GKE, Kueue and JobSet read on pods.

spot, flex-start, reservation, compact placement, TPU slices, Kueue's topology, exclusive placement; and the
tolerations that pods with GPUs or TPUs need. Sources: GKE's labels as in `inputs.facts`; Kueue's Topology Aware
Scheduling; JobSet's exclusive placement. The queue's own label belongs to the workload.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from symphony_charts.kinds.registry import KINDS
from symphony_charts.placement.assign.rules import DEVICE_TOLERATIONS, pool_selector
from symphony_charts.placement.fit.anti_affinity import with_anti_affinity
from symphony_charts.placement.pools.pool import Pool, Pools
from symphony_charts.spec.model import Experiment, PodSettings, Process
from symphony_charts.spec.pods import Pod, pods_of
from symphony_charts.spec.scheduling import Placement, Toleration, topology_of

__all__ = ["add_launch_features", "asks_for_tpu"]

_PREFIX = "cloud.google.com/"


def add_launch_features(experiment: Experiment, pools: Pools | None) -> Experiment:
    """Return the experiment with its launch features written into its pods; adding them twice changes nothing."""
    settled = {pod.name: _settle(pod, experiment, pools) for pod in pods_of(experiment).values()}
    annotations = dict(experiment.annotations)
    if experiment.placement.exclusive and _exclusive_annotation(experiment):
        annotations.setdefault(_exclusive_annotation(experiment), experiment.placement.exclusive)
    groups = {name: settled[name] for name in experiment.groups}
    processes = {name: settled[name] for name in experiment.processes}
    return msgspec.structs.replace(experiment, groups=groups, processes=processes, annotations=annotations)


def _settle(pod: Pod, experiment: Experiment, pools: Pools | None) -> PodSettings:
    settings, placement = pod.settings, experiment.placement
    gpus, chips = _asks_for_gpus(pod), asks_for_tpu(pod)
    selector, tolerations = _provisioning(placement)
    if gpus:
        tolerations.append(DEVICE_TOLERATIONS["nvidia.com/gpu"])
    if chips:
        tolerations.append(DEVICE_TOLERATIONS["google.com/tpu"])
        selector |= _tpu_slice(placement, pools)
    if placement.compact:
        selector |= _compact(experiment, pools, settings.node_selector)
    overlay: Mapping[str, object] = settings.pod_overlay
    if placement.exclusive and not _exclusive_annotation(experiment):
        overlay = with_anti_affinity(overlay, _exclusive(experiment, placement.exclusive))
    changes: dict[str, object] = {}
    if not selector.items() <= settings.node_selector.items():
        changes["node_selector"] = {**selector, **settings.node_selector}
    new = [toleration for toleration in tolerations if toleration not in settings.tolerations]
    if new:
        changes["tolerations"] = [*settings.tolerations, *new]
    # Kubernetes' own gangs say so in their PodGroup.
    notes = _topology(placement.topology) if experiment.workload.gang != "native" else {}
    if not notes.items() <= settings.annotations.items():
        changes["annotations"] = {**notes, **settings.annotations}
    if overlay != settings.pod_overlay:
        changes["pod_overlay"] = overlay
    return msgspec.structs.replace(settings, **changes) if changes else settings


def _asks_for_gpus(pod: Pod) -> bool:
    return any(process.gpus or _asks(process, "nvidia.com/gpu") for process in pod.processes.values())


def asks_for_tpu(pod: Pod) -> bool:
    """Return True if a process of the pod asks for chips of a TPU."""
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
    """Return the topology, and the accelerator if the pools leave only one."""
    if not placement.tpu_topology:
        return {}
    label = {f"{_PREFIX}gke-tpu-topology": placement.tpu_topology}
    candidates = pools.pools if pools else ()
    kinds = {pool.tpu.type for pool in candidates if pool.tpu and pool.tpu.topology == placement.tpu_topology}
    return label | ({f"{_PREFIX}gke-tpu-accelerator": kinds.pop()} if len(kinds) == 1 else {})


def _compact(experiment: Experiment, pools: Pools | None, chosen: Mapping[str, str]) -> dict[str, str]:
    """Return the placement policy of the pools; without pools, a group named after the experiment."""
    close: list[Pool] = [pool for pool in pools.pools if pool.placement] if pools else []
    policies = {pool.placement for pool in close}
    if len(policies) == 1 and policies != {"compact"}:
        return {f"{_PREFIX}placement-policy-name": policies.pop()}
    if len(close) == 1:
        return dict(pool_selector(close[0]))
    if any(pool_selector(pool) and pool_selector(pool)[0] in chosen.items() for pool in close):
        return {}
    return {f"{_PREFIX}gke-placement-group": experiment.name}


def _topology(wanted: str | None) -> dict[str, str]:
    if not wanted:
        return {}
    strength, label = topology_of(wanted)
    return {f"kueue.x-k8s.io/podset-{strength}-topology": label}


def _exclusive_annotation(experiment: Experiment) -> str:
    """Return the annotation by which the kind's controller keeps others out; empty if it has none."""
    kind = KINDS.get(experiment.workload.kind)
    return kind.exclusive if kind else ""


def _exclusive(experiment: Experiment, topology: str) -> dict[str, object]:
    selector = {
        "matchExpressions": [
            {"key": "symph.dev/experiment", "operator": "Exists"},
            {"key": "symph.dev/experiment", "operator": "NotIn", "values": [experiment.name]},
        ]
    }
    return {"labelSelector": selector, "topologyKey": topology}
