"""Gangs: the pods of a run start together or not at all."""

from __future__ import annotations

from collections.abc import Sequence

from symphony_charts.chart.build.draft import Draft, Group
from symphony_charts.chart.tree import Either, NonZero, Sum, Text, Tree, Value, When
from symphony_charts.spec.scheduling import topology_of
from symphony_charts.spec.workload import GANGS_OF_PODS

_VOLCANO = "volcano"


def queue_values(draft: Draft) -> dict[str, str]:
    """Return the values that the queue of the gang reads."""
    workload = draft.experiment.workload
    values = {"queue": workload.queue or "", "priority": workload.queue_priority or ""}
    read = {"kueue": ("queue", "priority"), _VOLCANO: ("queue",)}.get(workload.gang, ())
    return {key: values[key] for key in read}


def queue_labels(draft: Draft) -> dict[str, Tree]:
    """Return the labels by which Kueue queues an object."""
    if draft.experiment.workload.gang != "kueue":
        return {}
    return {
        f"kueue.x-k8s.io/{label}": When(f".Values.workload.{key}", Value(f".Values.workload.{key}", is_text=True))
        for label, key in (("queue-name", "queue"), ("priority-class", "priority"))
    }


def pod_labels(draft: Draft, group: Group) -> dict[str, Tree]:
    """Return the labels by which a pod belongs to its gang."""
    name = _name(draft, group)
    return {"scheduling.x-k8s.io/pod-group": name} if name and _gang(draft) == "coscheduling" else {}


def pod_annotations(draft: Draft, group: Group) -> dict[str, Tree]:
    """Return the annotations by which a pod belongs to its gang."""
    name = _name(draft, group)
    return {"scheduling.k8s.io/group-name": name} if name and _gang(draft) == _VOLCANO else {}


def pod_fields(draft: Draft, group: Group) -> dict[str, Tree]:
    """Return the fields of the spec by which a pod belongs to its gang."""
    name = _name(draft, group)
    if not name or _gang(draft) == "coscheduling":
        return {}
    if _gang(draft) == "native":
        return {"schedulingGroup": {"podGroupName": name}}
    return {"schedulerName": _VOLCANO}


def pod_groups(draft: Draft) -> list[tuple[Text, Tree, dict[str, Tree]]]:
    """Return name, condition and the object but for its metadata of each PodGroup of a run."""
    members = [group for group in draft.groups.values() if _name(draft, group)]
    if not members:
        return []
    if draft.experiment.workload.gang_scope == "group":
        gangs: list[Sequence[Group]] = [[group] for group in members]
    else:
        gangs = [members]
    made: list[tuple[Text, Tree, dict[str, Tree]]] = []
    for gang in gangs:
        condition = Either(tuple(NonZero(f"{group.path}.replicas") for group in gang))
        name = _name(draft, gang[0])
        if name is not None:
            made.append((name, condition, _pod_group(draft, Sum(tuple(least(group) for group in gang)))))
    return made


def _gang(draft: Draft) -> str:
    return draft.experiment.workload.gang


def _name(draft: Draft, group: Group) -> Text | None:
    """Return the name of the PodGroup of a group; None if it starts without a gang."""
    if group.is_kept or not draft.kind.has_pod_groups or _gang(draft) not in GANGS_OF_PODS:
        return None
    part = group.part if draft.experiment.workload.gang_scope == "group" else "gang"
    return Text(f"{{$fullname}}-{part}-{{$run}}")


def least(group: Group, path: str = "") -> tuple[str | int, ...]:
    """Return what the number of pods that must start together is the smallest of. `path` is that of the group.

    A StatefulSet replaces its pods one after the other: a new run that waited for all of them would wait for ever.
    """
    path = path or group.path
    replicas = f"{path}.replicas"
    if group.pod.settings.min_replicas is not None:
        return (f"{path}.minReplicas", replicas)
    return (replicas,) if group.is_finite else (1, replicas)


def _pod_group(draft: Draft, minimum: Sum) -> dict[str, Tree]:
    workload, topology = draft.experiment.workload, draft.experiment.placement.topology
    if workload.gang == "native":
        spec: dict[str, Tree] = {"schedulingPolicy": {"gang": {"minCount": minimum}}}
        if topology:
            spec["schedulingConstraints"] = {"topology": [{"key": topology_of(topology)[1]}]}
        version = f"scheduling.k8s.io/{workload.gang_version}"
    elif workload.gang == "coscheduling":
        version, spec = "scheduling.x-k8s.io/v1alpha1", {"minMember": minimum}
    else:
        version, spec = "scheduling.volcano.sh/v1beta1", {"minMember": minimum}
        spec["queue"] = When(".Values.workload.queue", Value(".Values.workload.queue", is_text=True))
    return {"apiVersion": version, "kind": "PodGroup", "spec": spec}
