"""Kind `jobset`: all groups that end are one JobSet, which ends with those of `done_when`; the twin of ``jobset.yaml``.

Source: kubernetes-sigs/jobset, api/jobset/v1alpha2/jobset_types.go: all of `replicatedJobs` and `successPolicy` is
immutable, and a child is named ``<set>-<member>-<index>``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from symphony_charts.workloads.group import Group

__all__ = ["MEMBER_LENGTH", "SET_LENGTH", "job_set", "member"]

# With the run, the index and three hyphens a child Job has at most 52 characters.
SET_LENGTH = 22
MEMBER_LENGTH = 18


def member(
    group: Group, metadata: Mapping[str, object], template: Mapping[str, object], fields: Mapping[str, object]
) -> dict[str, object]:
    """The part of a JobSet that runs `group`."""
    job = {"metadata": metadata, "spec": {"template": template, **fields}}
    return {"name": group.member, "replicas": 1, "template": job}


def job_set(
    metadata: Mapping[str, object], members: Sequence[Mapping[str, object]], done: Sequence[str]
) -> dict[str, object]:
    """The JobSet itself: once all members in `done` succeed it has, and stops the others; without any, once all do.

    The groups keep Services of their own, so that an address does not depend on the kind.
    """
    spec: dict[str, object] = {"network": {"enableDNSHostnames": False}, "replicatedJobs": list(members)}
    if done:
        spec["successPolicy"] = {"operator": "All", "targetReplicatedJobs": list(done)}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": metadata, "spec": spec}
