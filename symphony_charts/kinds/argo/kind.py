"""Kind `argo` is an Argo Workflow that creates the Jobs of all groups that end, and waits for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from symphony_charts.formats.field_reader import Fields
from symphony_charts.kinds.argo.manifest import manifests_of
from symphony_charts.kinds.argo.objects import objects
from symphony_charts.kinds.base import Kind, Object, described_job
from symphony_charts.kinds.group import Unit
from symphony_charts.spec.workload import Workload

__all__ = ["ArgoWorkflow"]

_API = "argoproj.io/v1alpha1"


class ArgoWorkflow(Kind):
    """A Workflow, by the WorkflowTemplate that holds the experiment, at once or on a schedule."""

    name = "argo"
    runs_as = "Job of a Workflow"
    controller = "Argo Workflows"
    gvks = ((_API, "Workflow"),)
    further = ((_API, "CronWorkflow"), (_API, "WorkflowTemplate"))
    is_repeated = True
    is_workflow = True

    def settings(self, workload: Workload) -> dict[str, object]:
        """Schedules, needs, parameters and rights."""
        argo = workload.argo
        values: dict[str, object] = {
            "schedules": list(argo.schedules),
            "timezone": argo.timezone,
            "needs": {name: list(after) for name, after in argo.needs.items()},
            "retries": argo.retries,
            "parameters": list(argo.parameters),
            "serviceAccount": argo.service_account,
        }
        if argo.schedules or argo.concurrency != "Forbid":
            values["concurrency"] = argo.concurrency
        return {key: value for key, value in values.items() if value} | ({} if argo.submit else {"submit": False})

    def build(self, unit: Unit) -> Iterator[dict[str, object]]:
        """The WorkflowTemplate, what runs it, and the rights to do so where no service account is named."""
        return objects(unit)

    def stops_the_rest(self, values: Mapping[str, object], done: int) -> bool:
        """Always: its last task does."""
        return True

    def children(self, item: Mapping[str, object]) -> Iterator[dict[str, object]]:
        """What a WorkflowTemplate creates; the Workflows that name it create nothing else."""
        return manifests_of(item) if item.get("kind") == "WorkflowTemplate" else iter(())

    def parts(self, item: Fields) -> Iterator[Fields]:
        """The same."""
        return (Fields.of(created, item.path, item.faults) for created in self.children(item.data))

    def jobs(self, item: Object) -> list[Object]:
        """The Jobs that a Workflow creates, by what it says itself or took over from its template."""
        if item["kind"] != "Workflow":
            return []
        taken = (item.get("status") or {}).get("storedWorkflowTemplateSpec") or {}
        created: Iterator[Object] = manifests_of({**item, "spec": {**taken, **item["spec"]}})
        jobs = [made for made in created if made.get("kind") == "Job"]
        return [described_job(item, self.outcome(item), str(job["metadata"]["name"]), job) for job in jobs]
