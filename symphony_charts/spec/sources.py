"""The records of a process's inputs: environment values from elsewhere, volumes and mounts, configuration, secrets."""

from __future__ import annotations

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
]


# Where every process of a pod finds configuration and secret files.
CONFIG_DIR = "/etc/symph/config"
SECRETS_DIR = "/etc/secrets"


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
