"""The workload says which Kubernetes kind runs an experiment, and holds what each kind alone can be told."""

from __future__ import annotations

from typing import Any, Literal

from symphony_charts.spec.record import Record
from symphony_charts.system.entry_points import entry_points

__all__ = [
    "GANGS_OF_PODS",
    "AppwrapperSettings",
    "ArgoSettings",
    "DijobSettings",
    "JobsetSettings",
    "VolcanoSettings",
    "Workload",
]

GANGS_OF_PODS = ("native", "coscheduling", "volcano")
"""The gangs that need a PodGroup. Kueue reads labels of a workload instead."""

# Other packages add kinds by the entry points `symph.kinds`.
_KINDS = ("jobs", "jobset", "appwrapper", "volcano", "dijob", "argo", *entry_points("symph.kinds"))
_KindName: Any = Literal[_KINDS]


class AppwrapperSettings(Record, frozen=True, kw_only=True):
    """What an AppWrapper says that no other kind of workload does.

    Attributes:
        version: That of workload.codeflare.dev, of which a cluster serves one: `v1beta2` (AppWrapper controller) or
            `v1beta1` (MCAD).
        annotations: Stand over ours: the fault tolerance of v1beta2.
    """

    version: Literal["v1beta2", "v1beta1"] = "v1beta2"
    annotations: dict[str, str] = {}


class ArgoSettings(Record, frozen=True, kw_only=True):
    """What a Workflow of Argo says that no other kind of workload does.

    Without a schedule the experiment runs at once, or where `submit` is off only when it is submitted or needed.

    Attributes:
        schedules: Cron lines at which it runs.
        timezone: The time zone of `schedules`.
        concurrency: While one run goes on the next is left out (`Forbid`) or takes its place (`Replace`).
        submit: Whether it runs at once.
        needs: Releases of other experiments of this kind, which run first, and those that they wait for.
        retries: How often the whole is tried again.
        parameters: Variables that processes declare and that a submission may set.
        service_account: What creates the Jobs; one with just these rights is made without it.
    """

    schedules: list[str] = []
    timezone: str | None = None
    concurrency: Literal["Forbid", "Replace"] = "Forbid"
    submit: bool = True
    needs: dict[str, list[str]] = {}
    retries: int = 0
    parameters: list[str] = []
    service_account: str | None = None


class DijobSettings(Record, frozen=True, kw_only=True):
    """What a DIJob says that no other kind of workload does.

    Attributes:
        operator: The version of DI-orchestrator that reads it, since three incompatible shapes share one apiVersion:
            `v0` (v0.1 to v0.2: coordinator, collector, learner), `v1.0` (one template), `v1.1.0` (tasks), `v1.1`
            (v1.1.1 and later: tasks and volumes).
        clean_pod_policy: Which pods are removed when it has ended.
        tasks: The type of groups where their name does not say it.
        containers: What the container of a process is called: `di-container` where it is alone in its pod, whose
            resources and ports operator v0 reads, else as the process.
        group: The group of jobs; all operators but v1.1.
        priority: Its priority; no released operator acts on it.
        preemptible: Whether others may take its place; no released operator runs such a job.
        topology: How its workers know each other; v1.0.
        parallel_workers: Workers in one pod; v1.0.
        max_replicas: How many workers it may grow to; v1.0.
    """

    operator: Literal["v0", "v1.0", "v1.1.0", "v1.1"] = "v1.1"
    clean_pod_policy: Literal["Running", "All", "None"] = "Running"
    tasks: dict[str, Literal["learner", "collector", "evaluator", "none"]] = {}
    containers: dict[str, str] = {}
    group: str | None = None
    priority: Literal["normal", "high"] = "normal"
    preemptible: bool = False
    topology: Literal["star", "alone", "mesh"] = "star"
    parallel_workers: int = 1
    max_replicas: int | None = None


class JobsetSettings(Record, frozen=True, kw_only=True):
    """What a JobSet says that no other kind of workload does.

    Attributes:
        max_restarts: How often all of it starts again when a part failed.
    """

    max_restarts: int = 0


class VolcanoSettings(Record, frozen=True, kw_only=True):
    """What a Volcano Job says that no other kind of workload does.

    Attributes:
        plugins: Plugins by name with their arguments, beside and over `env` and `svc`, which every Job has.
    """

    plugins: dict[str, list[str]] = {}


class Workload(Record, frozen=True, kw_only=True):
    """Which Kubernetes kind runs the processes, and how the job as a whole is queued.

    `jobset`, `appwrapper`, `volcano`, `dijob` and `argo` count on the kind of that name alone.

    Attributes:
        kind: The kind of object that runs the pods.
        gang: Who lets the pods start together or not at all.
        gang_scope: Whose pods start together: those of the experiment (default) or of each group.
        gang_version: Which version of scheduling.k8s.io the gang `native` uses.
        queue: The queue that it waits in, by the name of Kueue or Volcano.
        queue_priority: Its class where Kueue queues it.
        priority: The job's own, where MCAD queues it; higher wins.
        priority_class: The priority class of the pods.
        scheduler_name: The scheduler that places the pods.
        retries: How often a failed pod is started again, where the pod does not say.
        run_key: Starts a new run whenever it changes.
        jobset: What JobSet alone is told.
        appwrapper: What an AppWrapper alone is told.
        volcano: What Volcano alone is told.
        dijob: What a DIJob alone is told.
        argo: What Argo Workflows alone is told.
    """

    kind: _KindName = "jobs"
    gang: Literal["none", "kueue", "native", "coscheduling", "volcano"] = "none"
    gang_scope: Literal["experiment", "group"] | None = None
    gang_version: Literal["v1alpha2", "v1beta1"] | None = None
    queue: str | None = None
    queue_priority: str | None = None
    priority: int | None = None
    priority_class: str | None = None
    scheduler_name: str | None = None
    retries: int = 0
    run_key: str = ""
    jobset: JobsetSettings = JobsetSettings()
    appwrapper: AppwrapperSettings = AppwrapperSettings()
    volcano: VolcanoSettings = VolcanoSettings()
    dijob: DijobSettings = DijobSettings()
    argo: ArgoSettings = ArgoSettings()
