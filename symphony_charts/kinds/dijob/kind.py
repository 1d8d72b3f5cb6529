"""Kind `dijob` is one DIJob whose tasks are the groups that end, run by DI-orchestrator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from symphony_charts.errors import Problem
from symphony_charts.formats.data import sub
from symphony_charts.formats.field_reader import Fields
from symphony_charts.kinds.base import Kind, Object, described_job
from symphony_charts.kinds.dijob import children, pods
from symphony_charts.kinds.dijob.objects import faults_of, objects
from symphony_charts.kinds.group import Group, Unit
from symphony_charts.spec.workload import Workload

__all__ = ["DIJob"]


class DIJob(Kind):
    """A DIJob of all groups that end, under operator v0 of those called after a role."""

    name = "dijob"
    runs_as = "task of a DIJob"
    controller = "DI-orchestrator"
    gvks = pods.KINDS
    has_ranks = True
    restarts_in_place = False
    on_change = "pods come or go, and those that run keep the addresses that they were told"
    argo_conditions = ("status.phase == Succeeded", "status.phase == Failed")

    def settings(self, workload: Workload) -> dict[str, object]:
        """What differs from the usual."""
        own = workload.dijob
        values: dict[str, object] = {
            "operator": own.operator,
            "cleanPodPolicy": own.clean_pod_policy,
            "tasks": dict(own.tasks),
            "containers": dict(own.containers),
            "group": own.group,
            "priority": own.priority,
            "topology": own.topology,
            "parallelWorkers": own.parallel_workers,
            "maxReplicas": own.max_replicas,
        }
        usual: dict[str, object] = {"operator": "v1.1", "cleanPodPolicy": "Running", "priority": "normal"}
        usual |= {"topology": "star", "parallelWorkers": 1, "tasks": {}, "containers": {}}
        return {key: value for key, value in values.items() if value is not None and value != usual.get(key)}

    def faults(self, groups: Sequence[Group], values: Mapping[str, object]) -> Iterator[Problem]:
        """What no DIJob can run."""
        return faults_of(groups, values)

    def build(self, unit: Unit) -> Iterator[dict[str, object]]:
        """The DIJob, and what its operator needs beside it."""
        return objects(unit)

    def stops_the_rest(self, values: Mapping[str, object], done: int) -> bool:
        """It waits for all of its pods, but under operator v0."""
        return self.removes_its_pods(values)

    def fails_together(self, workload: Workload) -> bool:
        """The operator then takes away what runs, unless it is told to clean nothing."""
        return workload.dijob.clean_pod_policy != "None"

    def removes_its_pods(self, values: Mapping[str, object]) -> bool:
        """Under operator v0, where the end of a coordinator is that of the job."""
        settings = sub(values, "workload", "dijob")
        return settings.get("operator") == "v0" and settings.get("cleanPodPolicy") != "None"

    def children(self, item: Mapping[str, object]) -> Iterator[dict[str, object]]:
        """A Job or Deployment for each task."""
        return children.tasks_of(item)

    def parts(self, item: Fields) -> Iterator[Fields]:
        """The same."""
        return (Fields.of(created, item.path, item.faults) for created in children.tasks_of(item.data))

    def replicas(self, item: Object) -> int:
        """None: its tasks have a template each, also where version 1.0 calls one so."""
        return 0

    def is_ready(self, item: Object, pods: Sequence[Object]) -> bool:
        """By its phase."""
        return self.state(item) == "Running"

    def restarts(self, item: Object) -> bool:
        """Under operator v0 a job goes on without the collectors and learners that fail."""
        return pods.is_of_v0(item)

    def jobs(self, item: Object) -> list[Object]:
        """A Job for each task; with the DIJob all of them succeed, but under operator v0 its coordinator alone."""
        return [self._job(item, name, task) for name, task in pods.tasks_of(item)]

    def _job(self, item: Object, name: str, task: Object) -> Object:
        end = self.outcome(item)
        job = described_job(item, end, f"{item['metadata']['name']}-{name}", task)
        is_decided = end == "succeeded" and (not pods.is_of_v0(item) or name == "coordinator")
        if is_decided:
            job = {**job, "status": {"conditions": [{"type": "Complete", "status": "True"}]}}
        elif end == "failed" and (why := pods.message_of(item)):
            (gone,) = job["status"]["conditions"]
            job = {**job, "status": {"conditions": [{**gone, "message": f"{gone['message']}: {why}"}]}}
        counts = pods.counts_of(item, name)
        if not sum(counts.values()):
            return job
        done, failed = counts.get("succeeded", 0), counts.get("failed", 0)
        indexes = {"completedIndexes": _range(0, done), "failedIndexes": _range(done, failed)}
        spec = {**job["spec"], "completions": sum(counts.values())}
        # What is counted has ended each for itself, whatever became of the whole.
        conditions = [one for one in job["status"]["conditions"] if one["type"] != "Complete"]
        return {**job, "spec": spec, "status": {"conditions": conditions, **indexes}}


def _range(first: int, count: int) -> str:
    return f"{first}-{first + count - 1}" if count else ""
