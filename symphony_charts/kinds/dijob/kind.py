"""Kind `dijob` is one DIJob whose tasks are the groups that end, run by DI-orchestrator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from symphony_charts.formats.field_reader import Fields
from symphony_charts.kinds.base import Kind, Object, described_job
from symphony_charts.kinds.dijob import children, pods
from symphony_charts.spec.checks.dijob import tasks_of
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.workload import Workload

__all__ = ["DIJob"]


class DIJob(Kind):
    """A DIJob of all groups that end; under operator v0, of those that are called after a role."""

    name = "dijob"
    runs_as = "task of a DIJob"
    controller = "DI-orchestrator"
    gvks = pods.KINDS
    restarts_in_place = False
    on_change = "pods come or go, and those that run keep the addresses that they were told"
    argo_conditions = ("status.phase == Succeeded", "status.phase == Failed")

    def stops_the_rest(self, workload: Workload, done: int) -> bool:
        """Return True for operator v0, where the end of a coordinator ends the job, unless it cleans nothing."""
        return workload.dijob.operator == "v0" and workload.dijob.clean_pod_policy != "None"

    def fails_together(self, workload: Workload) -> bool:
        """The operator then takes away what runs, unless it is told to clean nothing."""
        return workload.dijob.clean_pod_policy != "None"

    def removed_pods(self, experiment: Experiment) -> list[str]:
        """Return all its pods for operator v0, unless it cleans nothing."""
        is_removed = self.stops_the_rest(experiment.workload, 1)
        return [pod.name for pod in tasks_of(experiment)] if is_removed else []

    def children(
        self, item: Mapping[str, object], beside: Sequence[Mapping[str, object]] = ()
    ) -> Iterator[dict[str, object]]:
        """Yield a Job or Deployment for each task."""
        return children.tasks_of(item, beside)

    def parts(self, item: Fields) -> Iterator[Fields]:
        """Yield the same."""
        return (Fields.of(created, item.path, item.faults) for created in children.tasks_of(item.data))

    def replicas(self, item: Object) -> int:
        """Return 0: each of its tasks has a template, also the only one of operator v1.0."""
        return 0

    def is_ready(self, item: Object, pods: Sequence[Object]) -> bool:
        """Return True in its phase Running."""
        return self.state(item) == "Running"

    def restarts(self, item: Object) -> bool:
        """Return True under operator v0: a job continues without the collectors and learners that fail."""
        return pods.is_of_v0(item)

    def jobs(self, item: Object) -> list[Object]:
        """Return a Job for each task. All succeed with the DIJob; under operator v0 the coordinator alone does."""
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
        # A replica that the operator counts has ended by itself, whatever became of the whole.
        conditions = [one for one in job["status"]["conditions"] if one["type"] != "Complete"]
        return {**job, "spec": spec, "status": {"conditions": conditions, **indexes}}


def _range(first: int, count: int) -> str:
    return f"{first}-{first + count - 1}" if count else ""
