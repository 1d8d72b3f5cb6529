"""Kinds `jobset` and `volcano`: all groups that end are one object, whose parts start together or end together.

Sources: kubernetes-sigs/jobset, api/jobset/v1alpha2/jobset_types.go: all of `replicatedJobs` and `successPolicy` is
immutable, and a child is named ``<set>-<member>-<index>``. volcano-sh/volcano v1.15.1, pkg/controllers/job (states,
plugins), pkg/webhooks/admission/jobs: a replica is the pod ``<job>-<task>-<index>``; the plugin `svc` gives it that
host name, in the headless Service of its group if it has one. The PodGroup is the controller's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from symphony_charts.formats.data import maps, sub
from symphony_charts.formats.field_reader import Fields
from symphony_charts.kinds.base import End, Kind, Object, PodSet, at_a_time, count_of, described_job
from symphony_charts.spec.workload import Workload


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


class VolcanoJob(Kind):
    """A Volcano Job of all groups that end."""

    name = "volcano"
    runs_as = "task of a Volcano Job"
    controller = "Volcano"
    mutable = ("spec.minAvailable", "spec.priorityClassName", "spec.tasks.*.minAvailable", "spec.tasks.*.replicas")
    gvks = (("batch.volcano.sh/v1alpha1", "Job"),)
    argo_conditions = ("status.state.phase == Completed", "status.state.phase in (Failed,Aborted,Terminated)")

    def stops_the_rest(self, workload: Workload, done: int) -> bool:
        """Return True for one group: it cannot wait for several."""
        return done == 1

    def fails_together(self, workload: Workload) -> bool:
        """Always: every task ends the job when it fails."""
        return True

    def children(
        self, item: Mapping[str, object], beside: Sequence[Mapping[str, object]] = ()
    ) -> Iterator[dict[str, object]]:
        name = sub(item, "metadata").get("name")
        for task in maps(sub(item, "spec"), "tasks"):
            metadata = {"name": f"{name}-{task.get('name')}"}
            spec = {"template": sub(task, "template"), "backoffLimit": 0, "completions": task.get("replicas", 1)}
            yield {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}

    def is_ready(self, item: Object, pods: Sequence[Object]) -> bool:
        status = item.get("status") or {}
        return int(status.get("running") or 0) + int(status.get("succeeded") or 0) >= self.pods_at_a_time(item)

    def pod_sets(self, item: Fields) -> Iterator[PodSet]:
        for task in item.block("spec").blocks("tasks"):
            yield PodSet(name=task.text("name"), template=task.block("template"), count=count_of(task, "replicas"))

    def jobs(self, item: Object) -> list[Object]:
        end = self.outcome(item)
        return [_described(item, end, task) for task in item["spec"].get("tasks") or []]


def _described(item: Object, end: End | None, task: Object) -> Object:
    template = task.get("template") or {"spec": {"containers": []}}
    replicas = task.get("replicas", 1)
    shape = {"completions": replicas, "parallelism": replicas, "template": template}
    name = f"{item['metadata']['name']}-{task.get('name', '')}"
    return described_job(item, end, name, {"metadata": template.get("metadata") or {}, "spec": shape})
