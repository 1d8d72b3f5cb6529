"""The model of an experiment: frozen records, read from and written to YAML or JSON without loss.

Records hold only the user's input, in the user's order; derived data (ports, environment, objects) is computed
elsewhere. `symphony_charts.spec.data` expands shorthand (a string for a list, `type=bind,...` for a mount) first, so
each meaning has one form here. `symphony_charts.spec.checks.finish.finish` sanitises names and checks references.

Quantities are strings as in Kubernetes (``"1500m"``, ``"2Gi"``); plain numbers become text.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from symphony_charts.spec.sources import (
    AnyVolume,
    Assignment,
    ConfigFile,
    EnvValue,
    ExecProbe,
    HttpProbe,
    Mount,
    Placement,
    Probe,
    Record,
    SecretFile,
    SecretSource,
    SecuritySettings,
    TcpProbe,
    Toleration,
)
from symphony_charts.spec.variable_names import Shell
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


# --- processes and groups --------------------------------------------------------------------------------------------


class LocalProcess(Record, frozen=True, kw_only=True):
    """Differences on one machine: a field that is set replaces the field of the process.

    Attributes:
        command: Program that replaces the entry point.
        args: Arguments that replace those of the process.
        cmds: Shell lines that replace those of the process.
        preamble: Shell lines before `cmds`, which replace those of the process.
        shell: The shell for `cmds` in a local run.
        env: Variables that are added, or replace variables of the same name.
        replicas: Number of replicas in a local run.
        cwd: Working folder in a local run.
        tty: Give it a terminal.
        gpus: Number of GPUs of this machine.
        log_size: Maximum size of its log, such as `10Mi`; the oldest lines are dropped.
    """

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
    log_size: str | None = None


class PodSettings(Record, frozen=True, kw_only=True):
    """Settings of a pod: of a lone process or a group, never of a process inside a group.

    Attributes:
        replicas: Number of pods.
        min_replicas: Minimum number of running pods, for kinds with gangs.
        restart: When an ended container restarts; the default is `never` for finite pods and `always` for services.
        retries: Number of retries of a failed pod.
        until: When a service pod ends: `run` with the run, `uninstall` with the release (`symph down` here). Without it
            exposed services to which no process of the run connects run until `uninstall`.
        names: Additional host names of the pod; on a cluster, each is a Service of exactly this name.
        node_selector: Required labels of its node.
        capabilities: Required capabilities of its node, as named in the pools file.
        tolerations: Taints of nodes that it tolerates.
        labels: Labels of the pod.
        annotations: Annotations of the pod.
        service_account: The service account that it runs as.
        priority_class: The priority class of the pod.
        grace_period: Seconds from SIGTERM to SIGKILL.
        deadline: Maximum run time in seconds.
        pod_overlay: Merged into the emitted pod (top level `metadata` and `spec`) by Kubernetes' strategic merge; a
            key that is a field of the spec sets that field.
    """

    replicas: int = 1
    min_replicas: int | None = None
    restart: Literal["always", "on-failure", "never"] | None = None
    retries: int | None = None
    until: Literal["run", "uninstall"] | None = None
    names: list[str] = []
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

    Attributes:
        image: Its container image; without one that of the experiment.
        image_pull_policy: When the image is pulled.
        command: Kubernetes' entry point; the default is the image's.
        args: Arguments of the entry point.
        cmds: Shell lines instead of `command`, run as one script.
        preamble: Shell lines before `cmds`.
        shell: Shell for `cmds`: `sh` is `/bin/sh -e -c`, `bash` is `bash -eo pipefail -c`; a list is put before the
            script.
        env: Environment variables; a value may come from a Secret, a ConfigMap or the pod.
        cwd: Folder in which it starts.
        lifecycle: `finite` ends by itself, `service` runs until the experiment ends.
        binds: Services that it listens on, with or without a fixed port.
        connects: Services that it connects to; a local run waits for them.
        exposes: Services that are reachable from outside, with or without a fixed port.
        requests: Reserved resources by name: `cpu`, `memory`, devices.
        limits: Resources of which it gets no more.
        gpus: Number of its GPUs.
        reserve: Subtract 100m CPU and 1024M memory, which a node reserves, from the requests.
        pod_share: Requests that are a share of the whole pod; `assign_to` sets it.
        mounts: Volumes, and where it sees them.
        ready: When it counts as ready; by default when its bound ports accept connections, with `none` as soon as it
            runs.
        after: Processes that must be ready (services) or done (finite ones) before it starts.
        assign_to: The machines that it runs on, and its share of them.
        local: Differences on one machine.
        container_overlay: Merged into the emitted container, like `pod_overlay` into the pod.
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
    """Processes that share one pod: its address, its volumes, its node.

    Attributes:
        processes: The processes by their names.
    """

    processes: dict[str, Process]


class Step(Record, frozen=True, kw_only=True):
    """A program that runs to its end before the processes of pods start. Volumes pass its results to them.

    Attributes:
        image: Its container image; without one that of the experiment.
        command: Kubernetes' entry point.
        args: Arguments of the entry point.
        cmds: Shell lines instead of `command`, run as one script.
        shell: Shell for `cmds`.
        env: Environment variables.
        cwd: Folder in which it starts.
        mounts: Volumes, and where it sees them.
        requests: Reserved resources.
        limits: Resources of which it gets no more.
        groups: Groups or lone processes that it runs before; empty: before every pod.
        container_overlay: Merged into the emitted container.
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
    """Access to an exposed service from outside the cluster.

    Attributes:
        type: LoadBalancer has its own address; ClusterIP has none: `symph open` forwards a port.
        host: The host name of the Ingress or Gateway.
        class_name: The class of the Ingress, or of the load balancer.
        gateway: The Gateway of its route, as `name` or `namespace/name`.
        source_ranges: Networks that may reach a load balancer, as CIDR; empty: all.
        annotations: Annotations of the Service, Ingress or route.
    """

    type: Literal["LoadBalancer", "ClusterIP", "NodePort", "Ingress", "Gateway"] = "ClusterIP"
    host: str | None = None
    class_name: str | None = None
    gateway: str | None = None
    source_ranges: list[str] = []
    annotations: dict[str, str] = {}


class Maintainer(Record, frozen=True, kw_only=True):
    """Maintainer of a chart.

    Attributes:
        name: The name.
        email: The email address.
        url: A page about them.
    """

    name: str
    email: str | None = None
    url: str | None = None


class ChartSettings(Record, frozen=True, kw_only=True):
    """Metadata in the Chart.yaml; fields that are not set are left out.

    Attributes:
        app_version: The version of the programs inside; also a label of all objects.
        home: The page of the project.
        icon: The address of a picture.
        sources: Addresses of its source code.
        maintainers: The maintainers of the chart.
        license: An SPDX identifier.
        changes: Changes of the next version, a line each.
    """

    app_version: str | None = None
    home: str | None = None
    icon: str | None = None
    sources: list[str] = []
    maintainers: list[Maintainer] = []
    license: str | None = None
    changes: list[str] = []


# msgspec omits a value only if it is the same object as the default; a Literal inside the annotation makes another one.
Start: TypeAlias = Literal["in-order", "together"]


class LocalSettings(Record, frozen=True, kw_only=True):
    """The experiment on one machine.

    Attributes:
        preamble: Lines that run in bash before each process, and may set its environment.
        env: Variables of every process.
        pass_env: Variables of your shell that processes get, by name or pattern (`WANDB_*`, `*`).
        cwd: Working folder of processes; the default is the folder of the spec.
        tty: Give processes a terminal.
        limits: Apply `limits` of memory and CPU in local runs.
        log_size: Maximum size of a log; the oldest lines are dropped. `unlimited`: no limit.
        ports: `own`: each pod has an address; `moved`: all use 127.0.0.1, and a port that is in use is replaced.
        start: `in-order`: a process waits for the services that it connects to; `together`: none waits, as on a
            cluster.
    """

    preamble: list[str] = []
    env: dict[str, str] = {}
    pass_env: list[str] = []
    cwd: str | None = None
    tty: bool = True
    limits: bool = False
    log_size: str = "1Gi"
    ports: Literal["own", "moved"] = "own"
    start: Start = "in-order"


class Experiment(Record, frozen=True, kw_only=True):
    """One experiment, the single model of every backend.

    Attributes:
        name: Its name; releases, charts and folders have it too.
        team: The team that owns it; its charts are in the team's folder in Git.
        owner: Prefix of the name, added once.
        namespace: The namespace on a cluster; `-n` sets another.
        image: Default container image of all processes.
        env: Variables of all processes and steps; a process may override them.
        env_file: Files of `NAME=value` lines, relative to the spec, whose variables `env` and processes may override.
        groups: Processes that share pods, by name.
        processes: Lone processes by name, a pod each.
        order: All processes (`name` or `group/name`) in the order that decides their ports; needed only
            if it differs from the order of the file.
        volumes: Volumes by name, which processes mount.
        configs: Configuration files, in /etc/symph/config of every process.
        secrets: Local secret files, in /etc/secrets of every process; charts do not contain them.
        secret_source: The source of the Secret with these files on a cluster.
        prepare: Steps that run to their end before pods start, by name.
        port_range: The first and the last port for services.
        done_when: Processes whose success ends the run; empty: all finite ones.
        on_failure: `stop` ends the run when a process has failed permanently; `continue` does not.
        linger: Seconds that services keep running after the end of the run.
        expose: Access to exposed services from outside, by name.
        workload: The Kubernetes kind that runs it, and its queue.
        compat: `di-engine` gives every process the DI_* variables of a DIJob.
        service_account: The service account of all pods.
        image_pull_secrets: Secrets with logins of image registries.
        networks: Multus networks of its pods.
        security: Security settings of its pods.
        placement: The node pools to plan on, and the kind of machines.
        labels: Labels of all objects.
        annotations: Annotations of all objects.
        chart: Metadata of Chart.yaml.
        local: Settings of local runs.
    """

    name: str
    team: str | None = None
    owner: str | None = None
    namespace: str | None = None
    image: str | None = None
    env: dict[str, EnvValue] = {}
    env_file: list[str] = []
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
    on_failure: Literal["stop", "continue"] = "stop"
    linger: int = 0
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
