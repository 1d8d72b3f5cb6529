"""Kind `argo` is an Argo Workflow that creates the Jobs of all groups that end, and waits for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from symphony_charts.errors import Problem
from symphony_charts.formats.field_reader import Fields
from symphony_charts.integrations.argo.kind import SHORT_FORMS, ArgoSettings, argo_faults, expanded, settings_of
from symphony_charts.kinds.argo.manifest import manifests_of
from symphony_charts.kinds.base import Kind, Object, TrialObjects, described_job
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.workload import Workload

__all__ = ["ARGO", "ArgoWorkflow"]

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
    settings = ArgoSettings
    short_forms = SHORT_FORMS
    builder = "symphony_charts.integrations.argo.chart:Argo"

    def expanded(self, settings: dict[str, object]) -> dict[str, object]:
        """Return the settings with short forms expanded."""
        return expanded(settings)

    def cluster_faults(self, experiment: Experiment) -> Iterator[Problem]:
        """Return the faults of its settings."""
        return argo_faults(experiment)

    def sweep_objects(
        self,
        experiment: Experiment,
        trials: Sequence[TrialObjects],
        *,
        parallel: int | None = None,
    ) -> list[dict[str, object]]:
        """Return a Workflow with a task for each trial, after the rights that it needs unless an account is named."""
        # The registry of kinds, which that module needs, loads this one.
        from symphony_charts.integrations.argo.sweep import sweep_objects

        account = settings_of(experiment.workload).service_account
        return sweep_objects(f"{experiment.name}-sweep", trials, parallel=parallel, service_account=account)

    def lost_in_task(self, workload: Workload) -> Iterator[str]:
        """Yield the settings of a whole Workflow."""
        settings = settings_of(workload)
        for field in ("schedules", "needs", "retries", "parameters"):
            if getattr(settings, field):
                yield f"workload.argo.{field}"

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


ARGO = ArgoWorkflow()
