"""The workload says which Kubernetes kind runs an experiment, and holds what each kind alone can be told."""

from __future__ import annotations

from typing import Literal

from symphony_charts.spec.record import Record

__all__ = ["AppwrapperSettings", "ArgoSettings", "DijobSettings", "JobsetSettings", "VolcanoSettings", "Workload"]


class AppwrapperSettings(Record, frozen=True, kw_only=True):
    """What an AppWrapper says that no other kind of workload does.

    `version` is that of workload.codeflare.dev, of which a cluster serves one: `v1beta2` (the AppWrapper controller,
    with or without Kueue) or `v1beta1` (MCAD). `annotations` stand over ours: the fault tolerance of v1beta2.
    """

    version: Literal["v1beta2", "v1beta1"] = "v1beta2"
    annotations: dict[str, str] = {}


class ArgoSettings(Record, frozen=True, kw_only=True):
    """What a Workflow of Argo says that no other kind of workload does.

    `schedules` are cron lines, read in `timezone`; while one run goes on the next is left out (`Forbid`) or takes its
    place (`Replace`). Without a schedule the experiment runs at once, or where `submit` is off only when it is
    submitted or needed. `needs` maps releases of other experiments of this kind, which run first, to those that they
    wait for. The whole is tried `retries` times more. `parameters` are variables that processes declare and that a
    submission may set. `service_account` is what creates the Jobs; one with just these rights is made without it.
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

    `operator` is the version of DI-orchestrator that reads it, since three incompatible shapes share one apiVersion:
    `v0` (v0.1 to v0.2: coordinator, collector, learner), `v1.0` (one template), `v1.1.0` (tasks), `v1.1` (v1.1.1 and
    later: tasks and volumes). `tasks` gives groups a type other than their name says. `topology`, `parallel_workers`
    and `max_replicas` are those of v1.0, `group` of all but v1.1; no released operator acts on `priority`, and none
    runs a `preemptible` job. `containers` says what the container of a process is called: `di-container` where it is
    alone in its pod, whose resources and ports operator v0 reads, else as the process.
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
    """What a JobSet says that no other kind of workload does: how often all of it starts again when a part failed."""

    max_restarts: int = 0


class VolcanoSettings(Record, frozen=True, kw_only=True):
    """What a Volcano Job says that no other kind of workload does: its `plugins`, by name with their arguments.

    They stand beside and over `env` and `svc`, which every Job has.
    """

    plugins: dict[str, list[str]] = {}


class Workload(Record, frozen=True, kw_only=True):
    """Which Kubernetes kind runs the processes, and how the job as a whole is queued.

    `priority` is the job's own (higher wins) where MCAD queues it, `queue_priority` its class where Kueue does, and
    `priority_class` that of the pods. `retries` is the default of every pod. `run_key` starts a new run whenever it
    changes. `gang_scope` says whose pods start together or not at all: those of the experiment (default) or of each
    group; `gang_version` which version of scheduling.k8s.io the gang `native` uses.
    `jobset`, `appwrapper`, `volcano`, `dijob` and `argo` count on the kind of that name alone.
    """

    kind: Literal["jobs", "jobset", "appwrapper", "volcano", "dijob", "argo"] = "jobs"
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
