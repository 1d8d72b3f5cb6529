"""Gangs: pods that start together or not at all; the twin of ``_gang.tpl`` and ``podgroups.yaml``.

Sources: kubernetes-sigs/scheduler-plugins, pkg/coscheduling (PodGroup v1alpha1, label ``…/pod-group``);
volcano-sh/volcano, pkg/scheduler (PodGroup v1beta1, annotation ``scheduling.k8s.io/group-name``); kubernetes/api,
scheduling/v1alpha2 and v1beta1 (PodGroup, ``spec.schedulingGroup`` of pods).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from symphony_charts.kinds.group import Group

__all__ = ["GANGS_OF_PODS", "SETTINGS", "Gang", "gangs", "pod_fields", "pod_group"]

# Those that need an object of their own; Kueue reads a label of the workload.
GANGS_OF_PODS = ("native", "coscheduling", "volcano")
# The values that stand in a PodGroup or its name: none of them changes in a run.
SETTINGS = ("gang", "gangScope", "gangTopology", "gangVersion")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """One PodGroup: `groups` have pods in it, of which `minimum` start together."""

    name: str
    groups: tuple[str, ...]
    minimum: int


def pod_fields(kind: str, gang: str, scheduler: object) -> dict[str, object]:
    """What a pod template of the gang `gang` carries; `scheduler` is the one that it names already, if any."""
    if kind == "native":
        return {"spec": {"schedulingGroup": {"podGroupName": gang}}}
    if kind == "coscheduling":
        return {"metadata": {"labels": {"scheduling.x-k8s.io/pod-group": gang}}}
    spec = {"schedulerName": scheduler or "volcano"}
    return {"metadata": {"annotations": {"scheduling.k8s.io/group-name": gang}}, "spec": spec}


def pod_group(gang: Gang, settings: Mapping[str, object], labels: Mapping[str, str]) -> dict[str, object]:
    """The PodGroup, of the kind of gang that the values of ``workload`` name."""
    kind = settings.get("gang")
    if kind == "native":
        version = f"scheduling.k8s.io/{settings.get('gangVersion')}"
        spec: dict[str, object] = {"schedulingPolicy": {"gang": {"minCount": gang.minimum}}}
        if settings.get("gangTopology"):
            spec["schedulingConstraints"] = {"topology": [{"key": settings["gangTopology"]}]}
    elif kind == "coscheduling":
        version, spec = "scheduling.x-k8s.io/v1alpha1", {"minMember": gang.minimum}
    else:
        version, spec = "scheduling.volcano.sh/v1beta1", {"minMember": gang.minimum}
        if settings.get("queue"):
            spec["queue"] = settings["queue"]
    return {"apiVersion": version, "kind": "PodGroup", "metadata": {"name": gang.name, "labels": labels}, "spec": spec}


def gangs(scope: str, whole: str, run: str, members: Sequence[tuple[Group, int]]) -> list[Gang]:
    """One gang of all `members` (group, minimum) called ``<whole>-<run>``, or by scope `group` one of each."""
    if not members:
        return []
    if scope == "group":
        return [Gang(name=f"{group.base}-{run}", groups=(group.name,), minimum=least) for group, least in members]
    names = tuple(group.name for group, _ in members)
    return [Gang(name=f"{whole}-{run}", groups=names, minimum=sum(least for _, least in members))]
