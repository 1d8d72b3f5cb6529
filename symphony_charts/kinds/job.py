"""Kinds `jobs`, `jobset` and `volcano`, and the kinds of services."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from symphony_charts.formats.data import maps, sub
from symphony_charts.formats.field_reader import Faults, Fields
from symphony_charts.kinds.base import COMPONENT, End, Kind, Object, PodSet, at_a_time, count_of, described_job
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import find_process, pods_of
from symphony_charts.spec.workload import Workload

# A Job has this time only after it has succeeded.
SUCCEEDED = "status.completionTime"
# Argo cannot search a list. A Job has at most the conditions Suspended, FailureTarget and Failed.
FAILED = ",".join(f"status.conditions.{place}.type in (FailureTarget,Failed)" for place in range(3))


class Jobs(Kind):
    name = "jobs"
    runs_as = "Job"
    gvks: tuple[tuple[str, str], ...] = (("batch/v1", "Job"),)
    holds_groups = False
    argo_conditions: tuple[str, str] | None = (SUCCEEDED, FAILED)
    mutable = (
        "spec.parallelism",
        "spec.suspend",
        "spec.activeDeadlineSeconds",
        "spec.backoffLimit",
        "spec.ttlSecondsAfterFinished",
    )
    kueue_paths = ()

    def ends_services(self, experiment: Experiment) -> bool:
        """Return True without Kueue, which resumes what a conductor suspends."""
        return experiment.workload.gang != "kueue"

    def is_conducted(self, workload: Workload) -> bool:
        return workload.gang != "kueue"

    def replicas(self, item: Object) -> int:
        spec = item["spec"]
        return int(spec.get("completions") or spec.get("parallelism") or 1)

    def is_ready(self, item: Object, pods: Sequence[Object]) -> bool:
        status = item.get("status") or {}
        count = int(status.get("ready") or 0) + int(status.get("succeeded") or 0)
        return count >= self.pods_at_a_time(item)

    def pods_at_a_time(self, item: Object) -> int:
        return at_a_time(Fields.of(item["spec"], "spec", Faults()))

    def pod_sets(self, item: Fields) -> Iterator[PodSet]:
        spec = item.block("spec")
        name = item.block("metadata").text("name")
        yield PodSet(name=name, template=spec.block("template"), count=at_a_time(spec))


class Conductor(Jobs):
    """The Job that ends a run. It is not a part of the experiment, but its pod needs a place."""

    name = ""
    gvks = ()
    argo_conditions = None

    def pod_sets(self, item: Fields) -> Iterator[PodSet]:
        for made in super().pod_sets(item):
            # No group has this name.
            yield replace(made, name=f"({COMPONENT})")


class StatefulSets(Kind):
    """StatefulSets: their pods run until they are deleted."""

    gvks: tuple[tuple[str, str], ...] = (("apps/v1", "StatefulSet"),)
    is_finite = False
    holds_groups = False
    mutable: tuple[str, ...] | None = (
        "spec.replicas",
        "spec.ordinals",
        "spec.template",
        "spec.updateStrategy",
        "spec.revisionHistoryLimit",
        "spec.persistentVolumeClaimRetentionPolicy",
        "spec.minReadySeconds",
    )

    def is_ready(self, item: Object, pods: Sequence[Object]) -> bool:
        status, replicas = item.get("status") or {}, int(item["spec"].get("replicas", 1))
        counts = ("readyReplicas", "updatedReplicas")
        return _is_seen(item) and all(status.get(count, 0) >= replicas for count in counts)

    def is_former(self, item: Object, pod: Object) -> bool:
        """Return True also for a pod of an earlier template that the controller replaces by itself."""
        strategy = item["spec"].get("updateStrategy") or {}
        if strategy.get("type") == "OnDelete" or (strategy.get("rollingUpdate") or {}).get("partition"):
            return super().is_former(item, pod)
        newest = (item.get("status") or {}).get("updateRevision")
        revision = (pod["metadata"].get("labels") or {}).get("controller-revision-hash")
        is_other = bool(newest and revision) and newest != revision
        return is_other or not _is_seen(item) or super().is_former(item, pod)

    def pod_sets(self, item: Fields) -> Iterator[PodSet]:
        spec = item.block("spec")
        name = item.block("metadata").text("name")
        yield PodSet(name=name, template=spec.block("template"), count=count_of(spec, "replicas"))


def _is_seen(item: Object) -> bool:
    seen = (item.get("status") or {}).get("observedGeneration", 0)
    return int(seen) >= int(item["metadata"].get("generation", 0))


class Deployments(StatefulSets):
    """Deployments, which our charts do not contain."""

    gvks = (("apps/v1", "Deployment"),)
    mutable = None


# Sources: kubernetes-sigs/jobset, api/jobset/v1alpha2/jobset_types.go: all of `replicatedJobs` and `successPolicy` is
# immutable, and a child is named ``<set>-<member>-<index>``. volcano-sh/volcano v1.15.1, pkg/controllers/job (states,
# plugins), pkg/webhooks/admission/jobs: a replica is the pod ``<job>-<task>-<index>``; the plugin `svc` gives it that
# host name, in the headless Service of its group if it has one. The controller creates the PodGroup.


class JobSet(Kind):
    name = "jobset"
    runs_as = "Job of a JobSet"
    controller = "the JobSet controller"
    gvks = (("jobset.x-k8s.io/v1alpha2", "JobSet"),)
    argo_conditions = ("status.terminalState == Completed", "status.terminalState == Failed")
    mutable = ("spec.suspend", "spec.ttlSecondsAfterFinished")
    kueue_paths = ()
    exclusive = "alpha.jobset.sigs.k8s.io/exclusive-topology"

    def ends_services(self, experiment: Experiment) -> bool:
        """Return True: services are members of the set outside of its success policy.

        With exclusive placement each member has nodes of its own, so there services stay outside.
        """
        return not (experiment.placement.exclusive or self.exclusive in experiment.annotations)

    def stops_the_rest(self, workload: Workload, done: int) -> bool:
        """Return True, because of the JobSet's success policy."""
        return True

    def fails_together(self, workload: Workload) -> bool:
        """Return True: a set fails with the first of its Jobs."""
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
        """Return True if restarts are possible: the failed Job of the last attempt exists for a moment longer."""
        return bool((item["spec"].get("failurePolicy") or {}).get("maxRestarts"))


class VolcanoJob(Kind):
    name = "volcano"
    runs_as = "task of a Volcano Job"
    controller = "Volcano"
    mutable = ("spec.minAvailable", "spec.priorityClassName", "spec.tasks.*.minAvailable", "spec.tasks.*.replicas")
    gvks = (("batch.volcano.sh/v1alpha1", "Job"),)
    argo_conditions = ("status.state.phase == Completed", "status.state.phase in (Failed,Aborted,Terminated)")

    def ends_services(self, experiment: Experiment) -> bool:
        """Return True if it ends with all finite groups or with one: it cannot wait for several of them."""
        done = {find_process(experiment, name).pod for name in experiment.done_when}
        return len(done) <= 1 or done == {name for name, pod in pods_of(experiment).items() if pod.is_finite}

    def stops_the_rest(self, workload: Workload, done: int) -> bool:
        """Return True for one group: the Job cannot wait for several."""
        return done == 1

    def fails_together(self, workload: Workload) -> bool:
        """Return True: every task ends the job when it fails."""
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
