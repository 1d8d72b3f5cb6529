"""Kind `jobset`: all groups that end are one JobSet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from symphony_charts.formats.data import maps, sub
from symphony_charts.formats.field_reader import Fields
from symphony_charts.kinds.base import Kind, Object, PodSet, at_a_time, count_of, described_job
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

    def stops_the_rest(self, workload: Workload, done: int) -> bool:
        """Return True: its success policy does."""
        return True

    def fails_together(self, workload: Workload) -> bool:
        """Always: a set fails with the first of its Jobs."""
        return True

    def children(
        self, item: Mapping[str, object], beside: Sequence[Mapping[str, object]] = ()
    ) -> Iterator[dict[str, object]]:
        name = sub(item, "metadata").get("name")
        for member in maps(sub(item, "spec"), "replicatedJobs"):
            template = sub(member, "template")
            metadata = {**sub(template, "metadata"), "name": f"{name}-{member.get('name')}-0"}
            yield {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": sub(template, "spec")}

    def pod_sets(self, item: Fields) -> Iterator[PodSet]:
        for job in item.block("spec").blocks("replicatedJobs"):
            inner = job.block("template").block("spec")
            count = count_of(job, "replicas") * at_a_time(inner)
            yield PodSet(name=job.text("name"), template=inner.block("template"), count=count)

    def jobs(self, item: Object) -> list[Object]:
        """Return the Job of each member. A set creates them late, deletes them early, and has none in a queue."""
        name, end = item["metadata"]["name"], self.outcome(item)
        members = item["spec"].get("replicatedJobs") or []
        return [described_job(item, end, f"{name}-{member['name']}-0", member["template"]) for member in members]

    def restarts(self, item: Object) -> bool:
        """Return True if it may restart at all: the failed Job of its last attempt exists for a moment longer."""
        return bool((item["spec"].get("failurePolicy") or {}).get("maxRestarts"))
