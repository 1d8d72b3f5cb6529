"""Kind `jobset`: all groups that end are one JobSet, which ends with those of `done_when`; the twin of ``jobset.yaml``.

Source: kubernetes-sigs/jobset, api/jobset/v1alpha2/jobset_types.go: all of `replicatedJobs` and `successPolicy` is
immutable, and a child is named ``<set>-<member>-<index>``.
"""

from __future__ import annotations

from collections.abc import Iterator

from symphony_charts.kinds.group import Member, Unit

__all__ = ["objects"]


def objects(unit: Unit) -> Iterator[dict[str, object]]:
    """The JobSet: once all members in `unit.done` succeed it has, and stops the others; without any, once all do.

    When a member fails the set has failed, unless it may begin again with new pods for all.

    The groups keep Services of their own, so that an address does not depend on the kind.
    """
    if not unit.members:
        return
    members = [_replicated_job(member) for member in unit.members]
    spec: dict[str, object] = {"network": {"enableDNSHostnames": False}, "replicatedJobs": members}
    if unit.done:
        done = [member.group.member for member in unit.done]
        spec["successPolicy"] = {"operator": "All", "targetReplicatedJobs": done}
    restarts = unit.whole("jobset", "maxRestarts")
    if restarts:
        spec["failurePolicy"] = {"maxRestarts": restarts}
    metadata = {"name": unit.name, "labels": unit.labels}
    yield {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": metadata, "spec": spec}


def _replicated_job(member: Member) -> dict[str, object]:
    template = {"metadata": member.metadata, "spec": {"template": member.template, **member.fields}}
    return {"name": member.group.member, "replicas": 1, "template": template}
