"""What an experiment is: frozen records, read from and written to YAML or JSON without loss.

The records hold only what was said, in the user's order; whatever follows from it (ports, environment, objects) is
computed elsewhere. Shorthand of the text form (a string for a list, `type=bind,...` for a mount) is expanded by
`symphony_charts.spec.load` before a record is made, so one meaning has one shape here. Names are sanitised and all
cross references hold once `symphony_charts.spec.check.finish` has returned the experiment.

Quantities are strings as Kubernetes writes them (``"1500m"``, ``"2Gi"``); plain numbers are turned into their text.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

__all__ = [
    "AnyVolume",
    "AppwrapperSettings",
    "ArgoSettings",
    "Assignment",
    "ClaimVolume",
    "ConfigFile",
    "ConfigVolume",
    "DeviceVolume",
    "DijobSettings",
    "EmptyDirVolume",
    "EnvSource",
    "EnvValue",
    "ExecProbe",
    "Experiment",
    "ExposeSettings",
    "GitVolume",
    "HostPathVolume",
    "HttpProbe",
    "JobsetSettings",
    "LocalProcess",
    "LocalSettings",
    "Mount",
    "NfsVolume",
    "Placement",
    "PodSettings",
    "Probe",
    "Process",
    "ProcessGroup",
    "Record",
    "SecretFile",
    "SecretSource",
    "SecretVolume",
    "SecuritySettings",
    "Step",
    "TcpProbe",
    "Toleration",
    "VolcanoSettings",
    "Workload",
]


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of all records: frozen, keyword-only, unknown keys refused, defaults left out when written."""


# --- environment -----------------------------------------------------------------------------------------------------


class EnvSource(Record, frozen=True, kw_only=True):
    """An environment value that comes from elsewhere; exactly one of `secret`, `config`, `field`, `resource` is set.

    `secret` and `config` name an existing Kubernetes object and need `key`; `field` is a pod field such as
    ``status.podIP``; `resource` a container resource such as ``limits.memory``.
    """

    secret: str | None = None
    config: str | None = None
    key: str | None = None
    field: str | None = None
    resource: str | None = None
    optional: bool = False


EnvValue: TypeAlias = str | EnvSource


# --- volumes and mounts ----------------------------------------------------------------------------------------------


class NfsVolume(Record, frozen=True, kw_only=True, tag_field="type", tag="nfs"):
    """An exported NFS directory."""

    server: str
    path: str
    read_only: bool = False


class HostPathVolume(Record, frozen=True, kw_only=True, tag_field="type", tag="host_path"):
    """A path of the node; `kind` is Kubernetes' hostPath type (``""``, ``Directory``, ``DirectoryOrCreate``...)."""

    path: str
    kind: str = ""


class ClaimVolume(Record, frozen=True, kw_only=True, tag_field="type", tag="claim"):
    """An existing PersistentVolumeClaim; locally a private folder unless `local` names one."""

    claim: str
    local: str | None = None


class EmptyDirVolume(Record, frozen=True, kw_only=True, tag_field="type", tag="empty_dir"):
    """Scratch space of the pod, shared by its processes; in memory if `memory`."""

    memory: bool = False
    size: str | None = None


class SecretVolume(Record, frozen=True, kw_only=True, tag_field="type", tag="secret"):
    """An existing Secret as files; `mode` in octal text (``"0644"``); locally the files of folder `local`."""

    secret: str
    mode: str | None = None
    items: dict[str, str] = {}
    local: str | None = None


class ConfigVolume(Record, frozen=True, kw_only=True, tag_field="type", tag="config"):
    """An existing ConfigMap as files; like `SecretVolume`."""

    config: str
    mode: str | None = None
    items: dict[str, str] = {}
    local: str | None = None


class DeviceVolume(Record, frozen=True, kw_only=True, tag_field="type", tag="device"):
    """A device of the node, such as ``/dev/infiniband``; makes its process privileged. `perm` as in ``rwm``."""

    path: str
    perm: str = "rwm"


class GitVolume(Record, frozen=True, kw_only=True, tag_field="type", tag="git"):
    """A Git repository checked out before the processes start, by an init container."""

    repository: str
    revision: str = "HEAD"
    image: str | None = None


AnyVolume: TypeAlias = (
    NfsVolume | HostPathVolume | ClaimVolume | EmptyDirVolume | SecretVolume | ConfigVolume | DeviceVolume | GitVolume
)


class Mount(Record, frozen=True, kw_only=True):
    """Volume `volume` (a key of `Experiment.volumes`) seen at the absolute path `at` in a process."""

    volume: str
    at: str
    read_only: bool = False
    sub_path: str | None = None


class ConfigFile(Record, frozen=True, kw_only=True):
    """A configuration file; exactly one of `text`, `base64` or `file` (a path, relative to the spec file) is set.

    `mode` is octal text. It stands at ``/etc/symph/config/<name>`` in every process.
    """

    text: str | None = None
    base64: str | None = None
    file: str | None = None
    mode: str | None = None


class SecretFile(Record, frozen=True, kw_only=True):
    """A local file whose content becomes one key of the experiment's Secret, mounted at ``/etc/secrets/<key>``.

    `key` is the base name of `file` unless given; `only` lists the processes that see it (empty: all). `remote` is
    where an external store holds it, as ``name`` or ``name#property``.
    """

    file: str
    key: str | None = None
    only: list[str] = []
    remote: str | None = None


class SecretSource(Record, frozen=True, kw_only=True):
    """Where the experiment's Secret comes from on a cluster.

    `existing`: it is pushed apart from the chart. `sealed`: the chart carries a SealedSecret, whose ciphertext is bound
    to `scope`. `external`: the chart carries an ExternalSecret of the SecretStore `store` (a ClusterSecretStore with
    `is_cluster_store`), read anew after `refresh`. `sops`: a publish writes the Secret, encrypted by the
    sops program, beside Flux's release.
    """

    source: Literal["existing", "sealed", "external", "sops"] = "existing"
    scope: Literal["strict", "namespace-wide", "cluster-wide"] = "strict"
    store: str | None = None
    is_cluster_store: bool = False
    refresh: str = "1h"


# --- readiness -------------------------------------------------------------------------------------------------------


class TcpProbe(Record, frozen=True, kw_only=True):
    """Ready when `port` (number or the name of a bound or exposed service) accepts a connection."""

    port: int | str


class HttpProbe(Record, frozen=True, kw_only=True):
    """Ready when GET `path` on `port` answers 200-399."""

    port: int | str
    path: str = "/"
    scheme: Literal["HTTP", "HTTPS"] = "HTTP"


class ExecProbe(Record, frozen=True, kw_only=True):
    """Ready when `command` exits 0."""

    command: list[str]


class Probe(Record, frozen=True, kw_only=True):
    """When a process counts as ready; exactly one of `tcp`, `http`, `exec`. Times are in seconds, as in Kubernetes."""

    tcp: TcpProbe | None = None
    http: HttpProbe | None = None
    exec: ExecProbe | None = None
    initial_delay: int = 0
    period: int = 10
    timeout: int = 1
    failures: int = 3
    successes: int = 1


# --- where a pod runs ------------------------------------------------------------------------------------------------


class Toleration(Record, frozen=True, kw_only=True):
    """A Kubernetes toleration; absent fields are absent there too."""

    key: str | None = None
    operator: Literal["Exists", "Equal"] | None = None
    value: str | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    seconds: int | None = None


class Assignment(Record, frozen=True, kw_only=True):
    """What the dispatcher is asked to do with a process; the keys are those of Symphony's `assign_to`.

    `memory_m` is in MiB, `cpu` in cores.
    """

    assign_to: Literal["machine", "gpu", "resource", "node_pool"]
    node_pool_name: str | None = None
    process_per_machine: int | None = None
    exclusive: bool | None = None
    cpu: float | None = None
    memory_m: float | None = None
    gpu_type: str | None = None
    gpu_count: int | None = None


class Placement(Record, frozen=True, kw_only=True):
    """Scheduling of the whole experiment: the node pools it is planned on, and launch features of its pods."""

    pools: str | None = None
    formula: Literal["allocatable", "symphony"] = "allocatable"
    spot: bool = False
    flex_start: bool = False
    reservation: str | None = None
    compact: bool = False
    topology: str | None = None
    exclusive: str | None = None
    tpu_topology: str | None = None


class SecuritySettings(Record, frozen=True, kw_only=True):
    """How far the pods are locked down; `restricted` is the Pod Security level of that name."""

    level: Literal["baseline", "restricted", "privileged"] = "baseline"
    run_as_user: int | None = None
    run_as_group: int | None = None
    fs_group: int | None = None
    read_only_root: bool = False
    network_policy: bool = False
    service_account_token: bool = False


# --- processes and groups --------------------------------------------------------------------------------------------


class LocalProcess(Record, frozen=True, kw_only=True):
    """What is different on one machine: each field replaces its namesake of the process when it is set."""

    command: list[str] | None = None
    args: list[str] | None = None
    cmds: list[str] | None = None
    preamble: list[str] | None = None
    env: dict[str, str] = {}
    replicas: int | None = None
    cwd: str | None = None
    tty: bool | None = None
    gpus: int | None = None
    on_exit: Literal["stop-all", "keep", "restart"] | None = None


class PodSettings(Record, frozen=True, kw_only=True):
    """What belongs to a pod, and so to a lone process or to a group, never to a process inside a group.

    `restart` None means: `never` for finite pods, `always` for services. `retries` is the number of times a failed
    pod is started again. `keep` lets a service pod survive a new run. `overlay` is merged into the emitted pod
    (top level ``metadata`` and ``spec``): maps merge, named lists merge by name, other lists are replaced.
    """

    replicas: int = 1
    min_replicas: int | None = None
    restart: Literal["always", "on-failure", "never"] | None = None
    retries: int | None = None
    keep: bool = False
    node_selector: dict[str, str] = {}
    capabilities: dict[str, str] = {}
    tolerations: list[Toleration] = []
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    service_account: str | None = None
    priority_class: str | None = None
    grace_period: int | None = None
    deadline: int | None = None
    pod_overlay: dict[str, object] = {}


class Process(PodSettings, frozen=True, kw_only=True):
    """One program of the experiment: a container in a pod, a pane in tmux.

    `command` and `args` are Kubernetes' (entry point and arguments); `cmds` are shell lines instead, run as one
    ``sh -e`` script in both worlds, after the lines of `preamble`. `binds` and `exposes` map a service name to a
    fixed port or None; `connects` lists service names. `after` lists processes that must be ready (services) or
    done (finite ones) first. `container_overlay` is merged into the emitted container like `pod_overlay`.
    """

    image: str | None = None
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    command: list[str] | None = None
    args: list[str] | None = None
    cmds: list[str] | None = None
    preamble: list[str] = []
    env: dict[str, EnvValue] = {}
    cwd: str | None = None
    lifecycle: Literal["finite", "service"] = "finite"
    binds: dict[str, int | None] = {}
    connects: list[str] = []
    exposes: dict[str, int | None] = {}
    requests: dict[str, str] = {}
    limits: dict[str, str] = {}
    gpus: int = 0
    reserve: bool = False
    mounts: list[Mount] = []
    ready: Probe | None = None
    after: list[str] = []
    assign_to: Assignment | None = None
    local: LocalProcess | None = None
    container_overlay: dict[str, object] = {}


class ProcessGroup(PodSettings, frozen=True, kw_only=True):
    """Processes that share one pod: its address, its volumes, its node."""

    processes: dict[str, Process]


class Step(Record, frozen=True, kw_only=True):
    """Something that runs to its end before the processes of each pod in `groups` (empty: of every pod).

    `groups` names groups or lone processes. Volumes carry its results over.
    """

    image: str | None = None
    command: list[str] | None = None
    args: list[str] | None = None
    cmds: list[str] | None = None
    env: dict[str, EnvValue] = {}
    cwd: str | None = None
    mounts: list[Mount] = []
    requests: dict[str, str] = {}
    limits: dict[str, str] = {}
    groups: list[str] = []


# --- the experiment --------------------------------------------------------------------------------------------------


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
    runs a `preemptible` job.
    """

    operator: Literal["v0", "v1.0", "v1.1.0", "v1.1"] = "v1.1"
    clean_pod_policy: Literal["Running", "All", "None"] = "Running"
    tasks: dict[str, Literal["learner", "collector", "evaluator", "none"]] = {}
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


class ExposeSettings(Record, frozen=True, kw_only=True):
    """How an exposed service is reached from outside the cluster."""

    type: Literal["LoadBalancer", "ClusterIP", "NodePort", "Ingress", "Gateway"] = "LoadBalancer"
    host: str | None = None
    class_name: str | None = None
    gateway: str | None = None
    source_ranges: list[str] = []
    annotations: dict[str, str] = {}


class LocalSettings(Record, frozen=True, kw_only=True):
    """The experiment on one machine. `preamble` lines run in bash before each process, and may set its environment.

    `env` is added to every process; `pass_env` names variables of the caller that are let through. With `ports`
    ``moved`` all pods are at 127.0.0.1, and a port that is taken there is another one, which every process sees.
    """

    preamble: list[str] = []
    env: dict[str, str] = {}
    pass_env: list[str] = []
    cwd: str | None = None
    tty: bool = True
    on_exit: Literal["stop-all", "keep", "restart"] = "stop-all"
    limits: bool = False
    ports: Literal["own", "moved"] = "own"


class Experiment(Record, frozen=True, kw_only=True):
    """One experiment, the single model of every backend.

    `processes` are lone ones (a pod each), `groups` several in a pod; both map a name to a record. `order` lists
    all processes (``name`` or ``group/name``) in the order of declaration when that is not groups first, then
    processes: ports are given in that order. `port_range` is inclusive. `done_when` lists the processes whose
    success ends the experiment (empty: all finite ones). `expose` maps an exposed service to its settings. `compat`
    gives every process what it finds under another tool: `di-engine` the DI_* variables of a DIJob.
    """

    name: str
    team: str | None = None
    owner: str | None = None
    namespace: str | None = None
    image: str | None = None
    groups: dict[str, ProcessGroup] = {}
    processes: dict[str, Process] = {}
    order: list[str] = []
    volumes: dict[str, AnyVolume] = {}
    configs: dict[str, ConfigFile] = {}
    secrets: list[SecretFile] = []
    secret_source: SecretSource = SecretSource()
    prepare: dict[str, Step] = {}
    port_range: tuple[int, int] = (7000, 8999)
    done_when: list[str] = []
    expose: dict[str, ExposeSettings] = {}
    workload: Workload = Workload()
    compat: Literal["di-engine"] | None = None
    service_account: str | None = None
    image_pull_secrets: list[str] = []
    networks: list[str] = []
    security: SecuritySettings = SecuritySettings()
    placement: Placement = Placement()
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    local: LocalSettings = LocalSettings()
