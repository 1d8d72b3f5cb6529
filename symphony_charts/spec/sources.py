"""Records of the parts of an experiment: variables, volumes, files, probes, scheduling and security."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Literal, TypeAlias

import msgspec


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of all records: frozen, keyword-only, unknown keys refused, defaults left out when written."""


# Where every process of a pod finds configuration and secret files.
CONFIG_DIR = "/etc/symph/config"
SECRETS_DIR = "/etc/secrets"


class EnvSource(Record, frozen=True, kw_only=True):
    """An environment value from another source; exactly one of `secret`, `config`, `field`, `resource` is set.

    Attributes:
        secret: The name of an existing Secret; needs `key`.
        config: The name of an existing ConfigMap; needs `key`.
        key: The key in it.
        field: A field of the pod, such as `status.podIP`.
        resource: A resource of the container, such as `limits.memory`.
        optional: Start the pod even without the Secret or ConfigMap.
    """

    secret: str | None = None
    config: str | None = None
    key: str | None = None
    field: str | None = None
    resource: str | None = None
    optional: bool = False


EnvValue: TypeAlias = str | EnvSource


class NfsVolume(Record, frozen=True, kw_only=True, tag_field="type", tag="nfs"):
    """An exported NFS directory.

    Attributes:
        server: Name or address of the server.
        path: The exported path.
        read_only: Allow no writes.
    """

    server: str
    path: str
    read_only: bool = False


class HostPathVolume(Record, frozen=True, kw_only=True, tag_field="type", tag="host_path"):
    """A path of the node.

    Attributes:
        path: The path; in a local run, a path of this machine.
        kind: Kubernetes' hostPath type (empty, `Directory`, `DirectoryOrCreate`...).
    """

    path: str
    kind: str = ""


class ClaimVolume(Record, frozen=True, kw_only=True, tag_field="type", tag="claim"):
    """An existing PersistentVolumeClaim; in a local run, a private folder that outlives runs.

    Attributes:
        claim: The name of the claim.
        local: The folder to use in a local run.
    """

    claim: str
    local: str | None = None


class EmptyDirVolume(Record, frozen=True, kw_only=True, tag_field="type", tag="empty_dir"):
    """Scratch space of the pod, shared by its processes.

    Attributes:
        memory: Keep it in memory.
        size: Maximum size, such as `2Gi`.
    """

    memory: bool = False
    size: str | None = None


class SecretVolume(Record, frozen=True, kw_only=True, tag_field="type", tag="secret"):
    """An existing Secret as files.

    Attributes:
        secret: The name of the Secret.
        mode: Mode of the files in octal text, such as `"0400"`.
        items: Keys that become files, with their paths; empty: all.
        local: The folder with the files for a local run.
    """

    secret: str
    mode: str | None = None
    items: dict[str, str] = {}
    local: str | None = None


class ConfigVolume(Record, frozen=True, kw_only=True, tag_field="type", tag="config"):
    """An existing ConfigMap as files.

    Attributes:
        config: The name of the ConfigMap.
        mode: Mode of the files in octal text, such as `"0644"`.
        items: Keys that become files, with their paths; empty: all.
        local: The folder with the files for a local run.
    """

    config: str
    mode: str | None = None
    items: dict[str, str] = {}
    local: str | None = None


class DeviceVolume(Record, frozen=True, kw_only=True, tag_field="type", tag="device"):
    """A device of the node; makes its process privileged.

    Attributes:
        path: The device, such as `/dev/infiniband`.
        perm: Allowed operations: read, write, mknod, as in `rwm`.
    """

    path: str
    perm: str = "rwm"


class GitVolume(Record, frozen=True, kw_only=True, tag_field="type", tag="git"):
    """A Git repository checked out before the processes start, by an init container.

    Attributes:
        repository: The address of the repository.
        revision: Branch, tag or commit.
        image: The image with git for the checkout.
    """

    repository: str
    revision: str = "HEAD"
    image: str | None = None


AnyVolume: TypeAlias = (
    NfsVolume | HostPathVolume | ClaimVolume | EmptyDirVolume | SecretVolume | ConfigVolume | DeviceVolume | GitVolume
)


class Mount(Record, frozen=True, kw_only=True):
    """A volume mounted at a path in a process.

    Attributes:
        volume: A key of the experiment's `volumes`.
        at: The absolute path in the process.
        read_only: Allow no writes of the process.
        sub_path: The folder of the volume to mount, instead of the whole volume.
        local: The file or folder to mount instead in a local run.
    """

    volume: str
    at: str
    read_only: bool = False
    sub_path: str | None = None
    local: str | None = None


class ConfigFile(Record, frozen=True, kw_only=True):
    """A configuration file of every process; exactly one of `text`, `base64` or `file` is set.

    Its path is ``/etc/symph/config/<name>``.

    Attributes:
        text: Its content.
        base64: Its content, if it is not text.
        file: A path, relative to the spec file.
        mode: Its mode in octal text.
    """

    text: str | None = None
    base64: str | None = None
    file: str | None = None
    mode: str | None = None


class SecretFile(Record, frozen=True, kw_only=True):
    """A local file whose content becomes one key of the experiment's Secret.

    It is mounted at ``/etc/secrets/<key>``, and at each path of `also_at`.

    Attributes:
        file: The path on this machine; `~` is the home folder.
        key: Its name in /etc/secrets; the default is the base name of `file`.
        only: Processes that can read it; empty: all.
        also_at: Additional paths of the file.
        remote: Its name in an external store, as `name` or `name#property`.
    """

    file: str
    key: str | None = None
    only: list[str] = []
    also_at: list[str] = []
    remote: str | None = None


def key_of(secret: SecretFile) -> str:
    """Return the key under which a file is in the Secret, which is its name in /etc/secrets."""
    return secret.key or PurePosixPath(secret.file).name


class SecretSource(Record, frozen=True, kw_only=True):
    """Source of the experiment's Secret on a cluster.

    Attributes:
        source: `existing`: push it separately from the chart; `sealed`: a SealedSecret; `external`: an ExternalSecret;
            `sops`: `symph publish` encrypts it beside the release of Flux.
        scope: The scope of a SealedSecret.
        store: The SecretStore that an ExternalSecret reads.
        is_cluster_store: The store is a ClusterSecretStore.
        refresh: Refresh interval of an ExternalSecret.
    """

    source: Literal["existing", "sealed", "external", "sops"] = "existing"
    scope: Literal["strict", "namespace-wide", "cluster-wide"] = "strict"
    store: str | None = None
    is_cluster_store: bool = False
    refresh: str = "1h"


_LEVELS = {
    "block": "cloud.google.com/gce-topology-block",
    "subblock": "cloud.google.com/gce-topology-subblock",
    "host": "cloud.google.com/gce-topology-host",
    "node": "kubernetes.io/hostname",
}


def topology_of(wanted: str) -> tuple[str, str]:
    """Return strength and node label of a topology: ``block``, ``preferred:block``, ``required:<label>``.

    Source: GKE's labels of nodes.
    """
    strength, _, level = wanted.rpartition(":")
    return strength or "required", _LEVELS.get(level, level)


class Toleration(Record, frozen=True, kw_only=True):
    """A Kubernetes toleration.

    Attributes:
        key: The tolerated taint; the default is every taint.
        operator: `Exists`: any value; `Equal` (default): this `value`.
        value: The value of the taint.
        effect: The tolerated effect; the default is all.
        seconds: Seconds until a pod leaves a node with the taint `NoExecute`.
    """

    key: str | None = None
    operator: Literal["Exists", "Equal"] | None = None
    value: str | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    seconds: int | None = None


class Assignment(Record, frozen=True, kw_only=True):
    """Request to the dispatcher for a process; the keys are those of Symphony's `assign_to`.

    Attributes:
        assign_to: `machine`: shares of a node of a pool; `gpu`: GPUs of a pool; `resource`: amounts, wherever they fit;
            `node_pool`: any node of a pool.
        node_pool_name: The pool, by its name in the pools file.
        process_per_machine: The number of these processes that fill one node.
        exclusive: Keep other pods of the experiment off its nodes.
        cpu: Number of cores, also a fraction.
        memory_m: Memory in MiB.
        gpu_type: The type of GPU, as the pool names it.
        gpu_count: Number of GPUs.
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
    """Scheduling of the whole experiment: the node pools it is planned on, and launch features of its pods.

    Attributes:
        pools: The file that describes the node pools, relative to the spec.
        formula: Size of a machine: `allocatable` as in Kubernetes, `symphony` as in Symphony.
        spot: Run on spot machines.
        flex_start: Wait for machines with flex-start.
        reservation: The reservation of machines to use.
        compact: Use nodes that are close together.
        topology: The topology domain that a group of pods must not leave.
        exclusive: The topology domain that a group of pods does not share.
        tpu_topology: Chips of a TPU slice, such as `2x4`.
    """

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
    """Security level of the pods.

    Attributes:
        level: The Pod Security level; `restricted` allows least, `privileged` allows capabilities and privilege
            escalation.
        run_as_user: The user id.
        run_as_group: The group id.
        fs_group: The group id that owns mounted volumes.
        read_only_root: Make the image's file system read-only.
        network_policy: Allow only connections to the experiment's services, and only from its processes.
        service_account_token: Give pods a token of the API server.
    """

    level: Literal["baseline", "restricted", "privileged"] = "baseline"
    run_as_user: int | None = None
    run_as_group: int | None = None
    fs_group: int | None = None
    read_only_root: bool = False
    network_policy: bool = False
    service_account_token: bool = False


class TcpProbe(Record, frozen=True, kw_only=True):
    """The process is ready when `port` accepts a connection.

    Attributes:
        port: The number, or the name of a service that it binds or exposes.
    """

    port: int | str


class HttpProbe(Record, frozen=True, kw_only=True):
    """The process is ready when GET `path` on `port` answers 200-399.

    Attributes:
        port: The number, or the name of a service that it binds or exposes.
        path: The path to request, from /.
        scheme: The protocol.
    """

    port: int | str
    path: str = "/"
    scheme: Literal["HTTP", "HTTPS"] = "HTTP"


class ExecProbe(Record, frozen=True, kw_only=True):
    """The process is ready when `command` exits 0.

    Attributes:
        command: Program and arguments, run where the process runs.
    """

    command: list[str]


class Probe(Record, frozen=True, kw_only=True):
    """When a process counts as ready; exactly one of `tcp`, `http`, `exec`. Times are in seconds, as in Kubernetes.

    Attributes:
        tcp: A port that accepts connections.
        http: An address that answers 200-399.
        exec: A command that exits 0.
        initial_delay: Seconds from the start of the process to the first probe.
        period: Seconds between two probes.
        timeout: Timeout of a probe in seconds.
        failures: Number of consecutive failures until it is no longer ready.
        successes: Number of consecutive successes until it is ready.
    """

    tcp: TcpProbe | None = None
    http: HttpProbe | None = None
    exec: ExecProbe | None = None
    initial_delay: int = 0
    period: int = 10
    timeout: int = 1
    failures: int = 3
    successes: int = 1
