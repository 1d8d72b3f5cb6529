"""The model says what an experiment is: frozen records, read from and written to YAML or JSON without loss.

The records hold only what was said, in the user's order; whatever follows from it (ports, environment, objects) is
computed elsewhere. Shorthand of the text form (a string for a list, `type=bind,...` for a mount) is expanded by
`symphony_charts.spec.data` before a record is made, so one meaning has one shape here. Names are sanitised and all
cross references hold once `symphony_charts.spec.checks.finish.finish` has returned the experiment.

Quantities are strings as Kubernetes writes them (``"1500m"``, ``"2Gi"``); plain numbers are turned into their text.
"""

from __future__ import annotations

from typing import Literal

from symphony_charts.spec.record import Record
from symphony_charts.spec.shells import Shell
from symphony_charts.spec.sources import AnyVolume, ConfigFile, EnvValue, Mount, SecretFile, SecretSource
from symphony_charts.spec.workload import Workload

__all__ = [
    "Assignment",
    "ChartSettings",
    "ExecProbe",
    "Experiment",
    "ExposeSettings",
    "HttpProbe",
    "LocalProcess",
    "LocalSettings",
    "Maintainer",
    "Placement",
    "PodSettings",
    "Probe",
    "Process",
    "ProcessGroup",
    "SecuritySettings",
    "Step",
    "TcpProbe",
    "Toleration",
]


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
    shell: Shell | None = None
    env: dict[str, str] = {}
    replicas: int | None = None
    cwd: str | None = None
    tty: bool | None = None
    gpus: int | None = None
    on_exit: Literal["stop-all", "keep", "restart"] | None = None
    log_size: str | None = None


class PodSettings(Record, frozen=True, kw_only=True):
    """What belongs to a pod, and so to a lone process or to a group, never to a process inside a group.

    `restart` None means: `never` for finite pods, `always` for services. `retries` is the number of times a failed
    pod is started again. `keep` lets a service pod survive a new run. `pod_overlay` is laid on the emitted pod (top
    level ``metadata`` and ``spec``) by Kubernetes' strategic merge; what is a field becomes that field in `finish`.
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
    script in both worlds, after the lines of `preamble`. `shell` runs them: ``sh -e``, ``bash -eo pipefail``, or a
    list of words before the script. `binds` and `exposes` map a service name to a
    fixed port or None; `connects` lists service names. `after` lists processes that must be ready (services) or
    done (finite ones) first. Without `ready` a process is ready once its bound ports accept connections, with `none` as
    soon as it runs. `container_overlay` is laid on the emitted container like `pod_overlay`.
    """

    image: str | None = None
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    command: list[str] | None = None
    args: list[str] | None = None
    cmds: list[str] | None = None
    preamble: list[str] = []
    shell: Shell = "sh"
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
    pod_share: list[Literal["cpu", "memory"]] = []
    mounts: list[Mount] = []
    ready: Probe | Literal["none"] | None = None
    after: list[str] = []
    assign_to: Assignment | None = None
    local: LocalProcess | None = None
    container_overlay: dict[str, object] = {}


class ProcessGroup(PodSettings, frozen=True, kw_only=True):
    """Processes that share one pod: its address, its volumes, its node."""

    processes: dict[str, Process]


class Step(Record, frozen=True, kw_only=True):
    """Something that runs to its end before the processes of each pod in `groups` (empty: of every pod).

    `groups` names groups or lone processes. Volumes carry its results over. `container_overlay` is what Kubernetes is
    told besides.
    """

    image: str | None = None
    command: list[str] | None = None
    args: list[str] | None = None
    cmds: list[str] | None = None
    shell: Shell = "sh"
    env: dict[str, EnvValue] = {}
    cwd: str | None = None
    mounts: list[Mount] = []
    requests: dict[str, str] = {}
    limits: dict[str, str] = {}
    groups: list[str] = []
    container_overlay: dict[str, object] = {}


# --- the experiment --------------------------------------------------------------------------------------------------


class ExposeSettings(Record, frozen=True, kw_only=True):
    """How an exposed service is reached from outside the cluster."""

    type: Literal["LoadBalancer", "ClusterIP", "NodePort", "Ingress", "Gateway"] = "LoadBalancer"
    host: str | None = None
    class_name: str | None = None
    gateway: str | None = None
    source_ranges: list[str] = []
    annotations: dict[str, str] = {}


class Maintainer(Record, frozen=True, kw_only=True):
    """Who looks after a chart."""

    name: str
    email: str | None = None
    url: str | None = None


class ChartSettings(Record, frozen=True, kw_only=True):
    """What the chart says of itself in its Chart.yaml; what is not said is not there.

    `app_version` is the version of the programs inside, which all objects bear as a label, too. `changes` are those of
    the next version, in a line each, and `license` an SPDX identifier, as Artifact Hub shows them.
    """

    app_version: str | None = None
    home: str | None = None
    icon: str | None = None
    sources: list[str] = []
    maintainers: list[Maintainer] = []
    license: str | None = None
    changes: list[str] = []


class LocalSettings(Record, frozen=True, kw_only=True):
    """The experiment on one machine. `preamble` lines run in bash before each process, and may set its environment.

    `env` is added to every process; `pass_env` names variables of the caller that are let through. With `ports`
    ``moved`` all pods are at 127.0.0.1, and a port that is taken there is another one, which every process sees. With
    `start` ``together`` no process waits for the services it connects to, as in a cluster. A log that grows beyond
    `log_size` loses its beginning (``unlimited``: none does).
    """

    preamble: list[str] = []
    env: dict[str, str] = {}
    pass_env: list[str] = []
    cwd: str | None = None
    tty: bool = True
    on_exit: Literal["stop-all", "keep", "restart"] = "stop-all"
    limits: bool = False
    log_size: str = "1Gi"
    ports: Literal["own", "moved"] = "own"
    start: Literal["in-order", "together"] = "in-order"


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
    chart: ChartSettings = ChartSettings()
    local: LocalSettings = LocalSettings()
