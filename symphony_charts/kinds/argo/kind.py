"""Kind `argo` is an Argo Workflow that creates the Jobs of all groups that end, and waits for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from symphony_charts.formats.field_reader import Fields
from symphony_charts.kinds.argo.manifest import manifests_of
from symphony_charts.kinds.base import Kind, Object, described_job
from symphony_charts.spec.workload import Workload

__all__ = ["ArgoWorkflow"]

_API = "argoproj.io/v1alpha1"


class ArgoWorkflow(Kind):
    """A Workflow that runs once or on a schedule, and the WorkflowTemplate that holds the experiment."""

    name = "argo"
    runs_as = "Job of a Workflow"
    controller = "Argo Workflows"
    gvks = ((_API, "Workflow"),)
    further = ((_API, "CronWorkflow"), (_API, "WorkflowTemplate"))
    is_repeated = True
    is_workflow = True

    def stops_the_rest(self, workload: Workload, done: int) -> bool:
        """Return True: its last task does."""
        return True

    def children(
        self, item: Mapping[str, object], beside: Sequence[Mapping[str, object]] = ()
    ) -> Iterator[dict[str, object]]:
        """Yield what a WorkflowTemplate creates. The Workflows that name it create nothing else."""
        return manifests_of(item) if item.get("kind") == "WorkflowTemplate" else iter(())

    def parts(self, item: Fields) -> Iterator[Fields]:
        """Yield the same."""
        return (Fields.of(created, item.path, item.faults) for created in self.children(item.data))

    def jobs(self, item: Object) -> list[Object]:
        """Return the Jobs that a Workflow creates, by its own spec or the stored one of its template."""
        if item["kind"] != "Workflow":
            return []
        taken = (item.get("status") or {}).get("storedWorkflowTemplateSpec") or {}
        created: Iterator[Object] = manifests_of({**item, "spec": {**taken, **item["spec"]}})
        jobs = [made for made in created if made.get("kind") == "Job"]
        return [described_job(item, self.outcome(item), str(job["metadata"]["name"]), job) for job in jobs]
