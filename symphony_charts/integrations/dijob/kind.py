"""Kind `dijob`: one DIJob whose tasks are the finite groups, run by DI-orchestrator."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from symphony_charts.errors import Problem
from symphony_charts.formats.field_reader import Fields
from symphony_charts.integrations.dijob import pods as dijob_pods
from symphony_charts.integrations.dijob.settings import (
    SERVER,
    DijobSettings,
    dijob_faults,
    has_di_engine,
    is_of_v0,
    node_variables,
    nodes_of,
    older_variables,
    reference_faults,
    settings_of,
    tasks_of,
    with_clean_names,
)
from symphony_charts.kinds.base import Kind, Object, described_job
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import Service
from symphony_charts.spec.workload import Workload


class DIJob(Kind):
    """A DIJob of all finite groups; under operator v0, of groups named after a role."""

    name = "dijob"
    runs_as = "task of a DIJob"
    controller = "DI-orchestrator"
    gvks = dijob_pods.KINDS
    restarts_in_place = False
    on_change = "pods come or go, and running ones keep the addresses that they got"
    argo_conditions = ("status.phase == Succeeded", "status.phase == Failed")
    pod_selector = dijob_pods.OPERATOR
    settings = DijobSettings
    compat = "di-engine"
    builder = "symphony_charts.integrations.dijob.chart:DIJob"
    peers = "symphony_charts.integrations.dijob.chart:DIEngine"

    def with_clean_names(self, settings: DijobSettings) -> DijobSettings:
        return with_clean_names(settings)

    def faults(self, experiment: Experiment) -> Iterator[Problem]:
        return reference_faults(experiment)

    def cluster_faults(self, experiment: Experiment) -> Iterator[Problem]:
        return dijob_faults(experiment)

    def with_helpers_here(
        self, experiment: Experiment, services: Sequence[Service], run_dir: str
    ) -> tuple[Experiment, Sequence[Service]]:
        """Return the experiment with the server of operator v0 as an additional process."""
        if not is_of_v0(experiment):
            return experiment, services
        # Late import: 60 ms, only for operator v0.
        from symphony_charts.integrations.dijob.local import with_server

        return with_server(experiment, services, run_dir)

    def planned_here(self, plan: Any, run_dir: str) -> Any:
        """Return the plan with the table of that server, and with gates that hold deleted replicas."""
        # Late import: 60 ms, only for kind dijob.
        from symphony_charts.integrations.dijob.local import with_replicas

        return with_replicas(plan, run_dir)

    def hidden_here(self, experiment: Experiment) -> Collection[str]:
        """Return the server of operator v0: the operator's own variable names it."""
        return (SERVER,) if is_of_v0(experiment) else ()

    def variables_here(
        self, experiment: Experiment, pod: str, index: int, hosts: Mapping[str, Sequence[str]]
    ) -> Mapping[str, str]:
        """Return the variables that operator v1.1 sets, and other kinds with `compat`."""
        nodes = nodes_of(experiment) if has_di_engine(experiment) else []
        job = f"{experiment.namespace or 'default'}/{experiment.name}"
        placed = {name: hosts[name] for name in nodes if name in hosts}
        return node_variables(job, pod, index, placed, settings_of(experiment.workload).tasks)

    def overrides_here(
        self,
        experiment: Experiment,
        pod: str,
        index: int,
        hosts: Mapping[str, Sequence[str]],
        ports: Mapping[str, int],
        name: str,
    ) -> Mapping[str, str]:
        """Return the variables that operators before v1.1 set."""
        return older_variables(experiment, pod, index, hosts, ports, name)

    def ends_services(self, experiment: Experiment) -> bool:
        """Return True except for operator v0, which also runs services, as roles."""
        return not is_of_v0(experiment)

    def stops_the_rest(self, workload: Workload, done: int) -> bool:
        """Return True for operator v0, where the end of a coordinator ends the job, unless it cleans nothing."""
        settings = settings_of(workload)
        return settings.operator == "v0" and settings.clean_pod_policy != "None"

    def fails_together(self, workload: Workload) -> bool:
        """Return True unless the operator cleans nothing: after a failure it removes running pods."""
        return settings_of(workload).clean_pod_policy != "None"

    def removed_pods(self, experiment: Experiment) -> list[str]:
        """Return all pods of the job for operator v0, unless it cleans nothing."""
        is_removed = self.stops_the_rest(experiment.workload, 1)
        return [pod.name for pod in tasks_of(experiment)] if is_removed else []

    def children(
        self, item: Mapping[str, object], beside: Sequence[Mapping[str, object]] = ()
    ) -> Iterator[dict[str, object]]:
        """Yield a Job or Deployment for each task."""
        return dijob_pods.created_by(item, beside)

    def parts(self, item: Fields) -> Iterator[Fields]:
        return (Fields.of(created, item.path, item.faults) for created in dijob_pods.created_by(item.data))

    def selectors(self, items: Sequence[Object]) -> list[str]:
        return dijob_pods.selectors_of(items)

    def labelled_pods(self, items: Sequence[Object], listed: Callable[[str], Iterable[Object]]) -> list[dict[str, Any]]:
        return dijob_pods.pods_of_jobs(items, listed)

    def adopted(self, item: Object) -> dict[str, Any] | None:
        """Return a foreign DIJob with the labels of an experiment of its name; None for one of our charts."""
        return dijob_pods.adopted(item)

    def replicas(self, item: Object) -> int:
        """Return 0: each of its tasks has a template, also the only one of operator v1.0."""
        return 0

    def is_ready(self, item: Object, pods: Sequence[Object]) -> bool:
        return self.state(item) == "Running"

    def restarts(self, item: Object) -> bool:
        """Return True under operator v0: a job continues without failed collectors and learners."""
        return dijob_pods.is_of_v0(item)

    def jobs(self, item: Object) -> list[Object]:
        """Return a Job for each task. All succeed with the DIJob; under operator v0 only the coordinator does."""
        return [self._job(item, name, task) for name, task in dijob_pods.tasks_of(item)]

    def _job(self, item: Object, name: str, task: Object) -> Object:
        end = self.outcome(item)
        job = described_job(item, end, f"{item['metadata']['name']}-{name}", task)
        is_decided = end == "succeeded" and (not dijob_pods.is_of_v0(item) or name == "coordinator")
        if is_decided:
            job = {**job, "status": {"conditions": [{"type": "Complete", "status": "True"}]}}
        elif end == "failed" and (why := dijob_pods.message_of(item)):
            (gone,) = job["status"]["conditions"]
            job = {**job, "status": {"conditions": [{**gone, "message": f"{gone['message']}: {why}"}]}}
        counts = dijob_pods.counts_of(item, name)
        if not sum(counts.values()):
            return job
        done, failed = counts.get("succeeded", 0), counts.get("failed", 0)
        indexes = {"completedIndexes": _range(0, done), "failedIndexes": _range(done, failed)}
        spec = {**job["spec"], "completions": sum(counts.values())}
        # A replica that the operator counts has ended by itself, regardless of the job's outcome.
        conditions = [one for one in job["status"]["conditions"] if one["type"] != "Complete"]
        return {**job, "spec": spec, "status": {"conditions": conditions, **indexes}}


def _range(first: int, count: int) -> str:
    return f"{first}-{first + count - 1}" if count else ""


DIJOB = DIJob()
