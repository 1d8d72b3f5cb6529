"""The model of an experiment: frozen records, read from and written to YAML or JSON without loss.

Records hold only the user's input, in the user's order; derived data (ports, environment, objects) is computed
elsewhere. `symphony_charts.spec.data` expands shorthand (a string for a list, `type=bind,...` for a mount) first, so
each meaning has one form here. `symphony_charts.spec.checks.finish.finish` sanitises names and checks references.

Quantities are strings as in Kubernetes (``"1500m"``, ``"2Gi"``); plain numbers become text.
"""

from __future__ import annotations

from typing import Literal

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
        command: Program in place of the entry point.
        args: Arguments in place of those of the process.
        cmds: Shell lines in place of those of the process.
        preamble: Shell lines before `cmds`, in place of those of the process.
        shell: What runs `cmds` here.
        env: Variables that are added, or take the place of namesakes.
        replicas: How many run here.
        cwd: Folder in which it starts here.
        tty: Whether it has a terminal.
        gpus: GPUs of this machine that it is given.
        log_size: How long its log may grow before it loses its beginning, such as `10Mi`.
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
        replicas: How many pods of it run.
        min_replicas: With so many of them the work goes on, where the kind knows gangs.
        restart: When a pod that ended is started again; without it `never` for finite pods and `always` for services.
        retries: How often a failed pod is started again.
        until: When a service pod ends: `run` with the run, `uninstall` with the release (`symph down` here). Without it
            exposed services to which no process of the run connects stay until `uninstall`.
        names: Host names under which others find the pod besides; on a cluster each is a Service of that very name.
        node_selector: Labels that its node must have.
        capabilities: What its node must offer in words of the pools file.
        tolerations: Taints of nodes that it tolerates.
        labels: Labels of the pod.
        annotations: Annotations of the pod.
        service_account: The service account that it runs as.
        priority_class: The priority class of the pod.
        grace_period: Seconds from the request to end until it is killed.
        deadline: Seconds that it may run.
        pod_overlay: Laid on the emitted pod (top level `metadata` and `spec`) by Kubernetes' strategic merge; what is a
            field becomes that field.
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
        command: Kubernetes' entry point; without it the image's own runs.
        args: Arguments of the entry point.
        cmds: Shell lines instead, run as one script in both worlds.
        preamble: Shell lines before `cmds`.
        shell: What runs them: `sh` is `/bin/sh -e -c`, `bash` is `bash -eo pipefail -c`; a list stands in front of the
            script.
        env: Its variables; a value may come from a Secret, a ConfigMap or the pod.
        cwd: Folder in which it starts.
        lifecycle: `finite` ends by itself, `service` runs until the experiment ends.
        binds: Services on which it listens, with a fixed port or none.
        connects: Services that it dials; here it waits for them.
        exposes: Services that people reach from outside, with a fixed port or none.
        requests: Resources that are kept for it, by name: `cpu`, `memory`, devices.
        limits: Resources of which it gets no more.
        gpus: GPUs that it has for itself.
        reserve: Whether it requests 100m CPU and 1024M memory less than asked for, which a node keeps for itself.
        pod_share: Of which requests the whole pod has its share; `assign_to` sets it.
        mounts: Volumes, and where it sees them.
        ready: When it counts as ready; without it once its bound ports accept connections, with `none` as soon as it
            runs.
        after: Processes that must be ready (services) or done (finite ones) before it starts.
        assign_to: On which machines it runs, and with what share of them.
        local: What is different on one machine.
        container_overlay: Laid on the emitted container like `pod_overlay` on the pod.
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
    """Something that runs to its end before the processes of pods start. Volumes carry its results over.

    Attributes:
        image: Its container image; without one that of the experiment.
        command: Kubernetes' entry point.
        args: Arguments of the entry point.
        cmds: Shell lines instead, run as one script.
        shell: What runs them.
        env: Its variables.
        cwd: Folder in which it starts.
        mounts: Volumes, and where it sees them.
        requests: Resources that are kept for it.
        limits: Resources of which it gets no more.
        groups: Groups or lone processes before whose pods it runs; empty: before every pod.
        container_overlay: What Kubernetes is told of its container besides.
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
        type: LoadBalancer has an address of its own, ClusterIP none: `symph open` forwards a port.
        host: The name under which Ingress or Gateway answer.
        class_name: The class of the Ingress, or of the load balancer.
        gateway: The Gateway whose route it becomes, as `name` or `namespace/name`.
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
        email: The address for mail.
        url: A page about them.
    """

    name: str
    email: str | None = None
    url: str | None = None


class ChartSettings(Record, frozen=True, kw_only=True):
    """Metadata in the Chart.yaml; fields that are not set are left out.

    Attributes:
        app_version: The version of the programs inside, a label of all objects, too.
        home: The page of the project.
        icon: The address of a picture.
        sources: Addresses of its source code.
        maintainers: Who looks after it.
        license: An SPDX identifier.
        changes: What is new in the next version, a line each.
    """

    app_version: str | None = None
    home: str | None = None
    icon: str | None = None
    sources: list[str] = []
    maintainers: list[Maintainer] = []
    license: str | None = None
    changes: list[str] = []


class LocalSettings(Record, frozen=True, kw_only=True):
    """The experiment on one machine.

    Attributes:
        preamble: Lines that run in bash before each process, and may set its environment.
        env: Variables of every process.
        pass_env: Variables of the caller that are let through, by name or pattern (`WANDB_*`, `*`).
        cwd: Folder in which processes start; without one that of the spec.
        tty: Whether processes have a terminal.
        limits: Whether `limits` of memory and CPU hold here, too.
        log_size: A log that grows beyond this loses its beginning; `unlimited`: none does.
        ports: `own`: each pod has an address; `moved`: all are at 127.0.0.1, and a port that is taken becomes another.
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
    start: Literal["in-order", "together"] = "in-order"


class Experiment(Record, frozen=True, kw_only=True):
    """One experiment, the single model of every backend.

    Attributes:
        name: What it is called: releases, charts and folders bear this name.
        team: Whose it is: the folder of its charts in Git.
        owner: Put before the name exactly once.
        namespace: The namespace on a cluster; verbs may say another.
        image: Container image of all processes that name none.
        env: Variables of all processes and steps; those of a process take the place of namesakes.
        env_file: Files of `NAME=value` lines, relative to the spec, whose variables `env` and processes may override.
        groups: Processes that share pods, by name.
        processes: Lone processes by name, a pod each.
        order: All processes (`name` or `group/name`) in the order of declaration, in which ports are given; needed only
            where it is not that of the file.
        volumes: Volumes by name, which processes mount.
        configs: Files that every process finds at /etc/symph/config.
        secrets: Local files whose content every process finds at /etc/secrets, and no chart.
        secret_source: Where the Secret of these files comes from on a cluster.
        prepare: Steps that run to their end before pods start, by name.
        port_range: The first and the last port that services are given.
        done_when: Processes whose success ends the run; empty: all finite ones.
        on_failure: `stop` ends the run when a process has failed for good; `continue` does not.
        linger: Seconds for which services keep running after the end of the run.
        expose: How exposed services are reached from outside, by name.
        workload: Which Kubernetes kind runs it, and how it is queued.
        compat: `di-engine` gives every process the DI_* variables of a DIJob.
        service_account: The service account of all pods.
        image_pull_secrets: Secrets with logins of image registries.
        networks: Networks (Multus) that its pods join.
        security: How far its pods are locked down.
        placement: The node pools that it is planned on, and what kind of machines it takes.
        labels: Labels of all objects.
        annotations: Annotations of all objects.
        chart: What Chart.yaml says.
        local: How it runs on one machine.
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
