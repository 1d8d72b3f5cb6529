"""Kind `volcano`: groups that end are tasks of one Volcano Job and start together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from symphony_charts.formats.data import maps, sub
from symphony_charts.formats.field_reader import Fields
from symphony_charts.kinds.base import End, Kind, Object, PodSet, count_of, described_job
from symphony_charts.spec.workload import Workload

__all__ = ["VolcanoJob"]


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
