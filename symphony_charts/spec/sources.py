"""The records of a process's inputs: environment values from elsewhere, volumes and mounts, configuration, secrets."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Literal, TypeAlias

from symphony_charts.spec.record import Record

__all__ = [
    "CONFIG_DIR",
    "SECRETS_DIR",
    "AnyVolume",
    "ClaimVolume",
    "ConfigFile",
    "ConfigVolume",
    "DeviceVolume",
    "EmptyDirVolume",
    "EnvSource",
    "EnvValue",
    "GitVolume",
    "HostPathVolume",
    "Mount",
    "NfsVolume",
    "SecretFile",
    "SecretSource",
    "SecretVolume",
    "key_of",
]


# Where every process of a pod finds configuration and secret files.
CONFIG_DIR = "/etc/symph/config"
SECRETS_DIR = "/etc/secrets"


class EnvSource(Record, frozen=True, kw_only=True):
    """An environment value that comes from elsewhere; exactly one of `secret`, `config`, `field`, `resource` is set.

    Attributes:
        secret: The name of an existing Secret; needs `key`.
        config: The name of an existing ConfigMap; needs `key`.
        key: The key in it.
        field: A field of the pod, such as `status.podIP`.
        resource: A resource of the container, such as `limits.memory`.
        optional: Whether the pod starts without the Secret or ConfigMap.
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
        read_only: Whether nobody may write there.
    """

    server: str
    path: str
    read_only: bool = False


class HostPathVolume(Record, frozen=True, kw_only=True, tag_field="type", tag="host_path"):
    """A path of the node.

    Attributes:
        path: The path; on one machine of that machine.
        kind: Kubernetes' hostPath type (empty, `Directory`, `DirectoryOrCreate`...).
    """

    path: str
    kind: str = ""


class ClaimVolume(Record, frozen=True, kw_only=True, tag_field="type", tag="claim"):
    """An existing PersistentVolumeClaim; on one machine a private folder that stays.

    Attributes:
        claim: The name of the claim.
        local: The folder on one machine instead.
    """

    claim: str
    local: str | None = None


class EmptyDirVolume(Record, frozen=True, kw_only=True, tag_field="type", tag="empty_dir"):
    """Scratch space of the pod, shared by its processes.

    Attributes:
        memory: Whether it is in memory.
        size: How much it may hold, such as `2Gi`.
    """

    memory: bool = False
    size: str | None = None


class SecretVolume(Record, frozen=True, kw_only=True, tag_field="type", tag="secret"):
    """An existing Secret as files.

    Attributes:
        secret: The name of the Secret.
        mode: Mode of the files in octal text, such as `"0400"`.
        items: Which keys become files, and their paths; empty: all.
        local: The folder whose files stand there on one machine.
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
        items: Which keys become files, and their paths; empty: all.
        local: The folder whose files stand there on one machine.
    """

    config: str
    mode: str | None = None
    items: dict[str, str] = {}
    local: str | None = None


class DeviceVolume(Record, frozen=True, kw_only=True, tag_field="type", tag="device"):
    """A device of the node; makes its process privileged.

    Attributes:
        path: The device, such as `/dev/infiniband`.
        perm: What may be done with it: read, write, mknod, as in `rwm`.
    """

    path: str
    perm: str = "rwm"


class GitVolume(Record, frozen=True, kw_only=True, tag_field="type", tag="git"):
    """A Git repository checked out before the processes start, by an init container.

    Attributes:
        repository: The address of the repository.
        revision: Branch, tag or commit.
        image: An image with git, which checks it out.
    """

    repository: str
    revision: str = "HEAD"
    image: str | None = None


AnyVolume: TypeAlias = (
    NfsVolume | HostPathVolume | ClaimVolume | EmptyDirVolume | SecretVolume | ConfigVolume | DeviceVolume | GitVolume
)


class Mount(Record, frozen=True, kw_only=True):
    """A volume seen at a path in a process.

    Attributes:
        volume: A key of the experiment's `volumes`.
        at: The absolute path in the process.
        read_only: Whether the process may only read.
        sub_path: The folder of the volume that is seen, instead of all.
    """

    volume: str
    at: str
    read_only: bool = False
    sub_path: str | None = None


class ConfigFile(Record, frozen=True, kw_only=True):
    """A configuration file of every process; exactly one of `text`, `base64` or `file` is set.

    It stands at ``/etc/symph/config/<name>``.

    Attributes:
        text: Its content.
        base64: Its content where it is no text.
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
        file: The path here; `~` is the home folder.
        key: Its name there; without one the base name of `file`.
        only: Processes that see it; empty: all.
        also_at: Further paths at which they see it, as programs expect it.
        remote: Where an external store holds it, as `name` or `name#property`.
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
    """Where the experiment's Secret comes from on a cluster.

    Attributes:
        source: `existing`: it is pushed apart from the chart; `sealed`: a SealedSecret; `external`: an ExternalSecret;
            `sops`: a publish encrypts it beside the release of Flux.
        scope: To what the ciphertext of a SealedSecret is bound.
        store: The SecretStore that an ExternalSecret reads.
        is_cluster_store: Whether that is a ClusterSecretStore.
        refresh: How often an ExternalSecret is read anew.
    """

    source: Literal["existing", "sealed", "external", "sops"] = "existing"
    scope: Literal["strict", "namespace-wide", "cluster-wide"] = "strict"
    store: str | None = None
    is_cluster_store: bool = False
    refresh: str = "1h"
