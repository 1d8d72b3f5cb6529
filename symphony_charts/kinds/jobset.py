"""Kind `jobset`: all groups that end are one JobSet, which ends with those of `done_when`; the twin of ``jobset.yaml``.

Source: kubernetes-sigs/jobset, api/jobset/v1alpha2/jobset_types.go: all of `replicatedJobs` and `successPolicy` is
immutable, and a child is named ``<set>-<member>-<index>``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from symphony_charts.formats.data import maps, sub
from symphony_charts.formats.field_reader import Fields
from symphony_charts.kinds.base import Kind, Object, PodSet, at_a_time, count_of, described_job
from symphony_charts.kinds.group import Member, Unit
from symphony_charts.spec.workload import Workload

__all__ = ["JobSet"]


class JobSet(Kind):
    """A JobSet of all groups that end."""

    name = "jobset"
    runs_as = "Job of a JobSet"
    controller = "the JobSet controller"
    gvks = (("jobset.x-k8s.io/v1alpha2", "JobSet"),)
    argo_conditions = ("status.terminalState == Completed", "status.terminalState == Failed")
    mutable = ("spec.suspend", "spec.ttlSecondsAfterFinished")
    kueue_paths = ()
    exclusive = "alpha.jobset.sigs.k8s.io/exclusive-topology"

    def settings(self, workload: Workload) -> dict[str, object]:
        """How often all starts again."""
        return {"maxRestarts": workload.jobset.max_restarts} if workload.jobset.max_restarts else {}

    def build(self, unit: Unit) -> Iterator[dict[str, object]]:
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

    def stops_the_rest(self, values: Mapping[str, object], done: int) -> bool:
        """Always: that is what its success policy is for."""
        return True

    def fails_together(self, workload: Workload) -> bool:
        """Always: a set fails with the first of its Jobs."""
        return True

    def children(self, item: Mapping[str, object]) -> Iterator[dict[str, object]]:
        """The Job of each member."""
        name = sub(item, "metadata").get("name")
        for member in maps(sub(item, "spec"), "replicatedJobs"):
            template = sub(member, "template")
            metadata = {**sub(template, "metadata"), "name": f"{name}-{member.get('name')}-0"}
            yield {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": sub(template, "spec")}

    def pod_sets(self, item: Fields) -> Iterator[PodSet]:
        """The pods of each member."""
        for job in item.block("spec").blocks("replicatedJobs"):
            inner = job.block("template").block("spec")
            count = count_of(job, "replicas") * at_a_time(inner)
            yield PodSet(name=job.text("name"), template=inner.block("template"), count=count)

    def jobs(self, item: Object) -> list[Object]:
        """The Job of each member, which the set makes late, takes away early and hides while it is queued."""
        name, end = item["metadata"]["name"], self.outcome(item)
        members = item["spec"].get("replicatedJobs") or []
        return [described_job(item, end, f"{name}-{member['name']}-0", member["template"]) for member in members]

    def restarts(self, item: Object) -> bool:
        """Whether it may, however often it has: the failed Job of its last attempt is there for a moment longer."""
        return bool((item["spec"].get("failurePolicy") or {}).get("maxRestarts"))


def _replicated_job(member: Member) -> dict[str, object]:
    template = {"metadata": member.metadata, "spec": {"template": member.template, **member.fields}}
    return {"name": member.group.member, "replicas": 1, "template": template}
