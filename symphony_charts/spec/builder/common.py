"""Shared parts of the builders of processes and groups: checked keywords, pod settings and mounts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from typing import Any, Literal, TypeAlias, TypeVar, cast

import msgspec

from symphony_charts.errors import Problem, SpecError
from symphony_charts.formats.names import DNS_LABEL, hint, sanitize
from symphony_charts.spec.model import PodSettings
from symphony_charts.spec.sources import AnyVolume

_Item = TypeVar("_Item")
Data: TypeAlias = "dict[str, object]"

# Symphony's keywords, and our field for each.
ALIASES = {
    "cmd": "cmds",
    "container_image": "image",
    "preamble_cmds": "preamble",
    "restart_policy": "restart",
    "start_dir": "cwd",
}


def clean_name(name: object, what: str) -> str:
    """Return `name` sanitised. Raises SpecError if it is empty, no text, or still no DNS label."""
    clean = sanitize(name) if isinstance(name, str) else ""
    if not DNS_LABEL.fullmatch(clean):
        next_step = "use lower-case letters, digits and dashes; begin and end with a letter or digit"
        raise SpecError.one(f"{name!r} is not a valid name of {what}", "name", next_step)
    return clean


def known_fields(given: Mapping[str, object], record: type[msgspec.Struct], call: str) -> Data:
    """Return `given` keywords as fields of `record`, including Symphony's spellings; None means not given.

    Raises SpecError for all unknown keywords, each with the nearest field.
    """
    names = set(record.__struct_fields__)
    choices = sorted(names | {alias for alias, field in ALIASES.items() if field in names})
    problems: list[Problem] = []
    fields: Data = {}
    for key, value in given.items():
        field = ALIASES.get(key, key)
        if field not in names:
            next_step = hint(key, choices, f"known: {', '.join(choices)}")
            problems.append(Problem(f'{call} has no option "{key}"', key, next_step))
        elif value is not None:
            fields[field] = value
    if problems:
        raise SpecError(problems)
    return fields


def builtins_of(value: object) -> Any:
    """Return a record as data; a deep copy of anything else."""
    return msgspec.to_builtins(value) if isinstance(value, msgspec.Struct) else deepcopy(value)


def flat(items: Iterable[_Item | Iterable[_Item]], kind: type[_Item]) -> Iterator[_Item]:
    """Yield the items, given one by one or in lists."""
    for item in items:
        yield from [item] if isinstance(item, kind) else cast("Iterable[_Item]", item)


def lines_of(text: str | Iterable[object]) -> list[Any]:
    """Return shell lines or words as a list; a single text is one of them."""
    return [text] if isinstance(text, str) else list(text)


class PodVerbs:
    """Verbs of anything that becomes a pod: a lone process or a group. They fill `_data`."""

    _data: Data

    def _map(self, field: str) -> Data:
        return cast("Data", self._data.setdefault(field, {}))

    def _list(self, field: str) -> list[object]:
        return cast("list[object]", self._data.setdefault(field, []))

    def _check_pod(self, verb: str) -> None:
        """Raise SpecError if this is a process inside a group."""

    def restart_policy(self, policy: Literal["Always", "OnFailure", "Never", "always", "on-failure", "never"]) -> None:
        """Set when the pod's containers restart after they ended."""
        self._check_pod("restart_policy")
        self._data["restart"] = policy

    def node_selector(self, key: str, value: object) -> None:
        """Run only on nodes whose label `key` is `value`."""
        self._check_pod("node_selector")
        self._map("node_selector")[key] = value

    def add_toleration(self, **toleration: object) -> None:
        """Tolerate a taint; keywords are Kubernetes' (`key`, `operator`, `value`, `effect`)."""
        self._check_pod("add_toleration")
        tolerations = self._list("tolerations")
        if toleration not in tolerations:
            tolerations.append(toleration)

    def add_label(self, key: str, val: object) -> None:
        """Put a label on the pod."""
        self._check_pod("add_label")
        self._map("labels")[key] = val

    def add_labels(self, **labels: object) -> None:
        """Put several labels on the pod."""
        for key, value in labels.items():
            self.add_label(key, value)

    def add_annotation(self, key: str, value: object) -> None:
        """Put an annotation on the pod."""
        self._check_pod("add_annotation")
        self._map("annotations")[key] = value

    def set_replicas(self, replicas: int, min_replicas: int | None = None) -> None:
        """Run `replicas` copies of the pod; a gang starts when `min_replicas` of them fit."""
        self._check_pod("set_replicas")
        self._data["replicas"] = replicas
        if min_replicas is not None:
            self._data["min_replicas"] = min_replicas

    def _pod_fields(self) -> list[str]:
        return [field for field in self._data if field in PodSettings.__struct_fields__]


class MountVerbs:
    """Symphony's mount verbs. Each declares its volume at the mount; equal volumes are merged."""

    def _add_mount(self, mount: Data) -> None:
        raise NotImplementedError

    def mount_volume(
        self,
        volume: str | AnyVolume | Mapping[str, Any],
        mount_path: str,
        *,
        name: str | None = None,
        read_only: bool = False,
        sub_path: str | None = None,
    ) -> None:
        """Mount a volume at `mount_path`: one of the experiment's by name, or a volume record."""
        mount: Data = {"at": mount_path}
        if read_only:
            mount["read_only"] = True
        if sub_path is not None:
            mount["sub_path"] = sub_path
        if isinstance(volume, str):
            mount["volume"] = volume
        else:
            data = dict(volume) if isinstance(volume, Mapping) else msgspec.to_builtins(volume)
            mount[str(data.pop("type", "volume"))] = data
        self._mount(mount, name)

    def mount_nfs(self, server: str, path: str, mount_path: str, name: str | None = None) -> None:
        """Mount the NFS directory `path` of `server`."""
        self._mount({"at": mount_path, "nfs": {"server": server, "path": path}}, name)

    def mount_host_path(self, path: str, mount_path: str, hostpath_type: str = "", name: str | None = None) -> None:
        """Mount a path of the node; `hostpath_type` is Kubernetes' (``Directory``, ``DirectoryOrCreate``...)."""
        kind = {"kind": hostpath_type} if hostpath_type else {}
        self._mount({"at": mount_path, "host_path": {"path": path, **kind}}, name)

    def mount_secret(
        self,
        secret_name: str,
        mount_path: str,
        defaultMode: int | str | None = None,  # noqa: N803 - Symphony's spelling
        name: str | None = None,
    ) -> None:
        """Mount an existing Secret as files; `defaultMode` is a number (0o600) or octal text (``"0600"``)."""
        mode = f"{defaultMode:04o}" if isinstance(defaultMode, int) else defaultMode
        self._mount({"at": mount_path, "secret": {"secret": secret_name, **({"mode": mode} if mode else {})}}, name)

    def mount_git_repo(self, repository: str, revision: str, mount_path: str, name: str | None = None) -> None:
        """Mount a checkout of a Git repository, made before the processes start."""
        git = {"repository": repository, **({"revision": revision} if revision else {})}
        self._mount({"at": mount_path, "git": git}, name)

    def mount_empty_dir(self, name: str | None, use_memory: bool, mount_path: str) -> None:
        """Mount scratch space of the pod; in memory if `use_memory`."""
        self._mount({"at": mount_path, "empty_dir": {"memory": True} if use_memory else {}}, name)

    def mount_shared_memory(self, name: str | None = None, size: str | None = None) -> None:
        """Mount shared memory at /dev/shm, of `size` if it is set (``"2Gi"``)."""
        self._mount({"shm": size if size is not None else True}, name)

    def mount_claim(self, claim: str, mount_path: str, name: str | None = None) -> None:
        """Mount an existing PersistentVolumeClaim."""
        self._mount({"at": mount_path, "claim": claim}, name)

    def mount_config(self, config: str, mount_path: str, name: str | None = None) -> None:
        """Mount an existing ConfigMap as files."""
        self._mount({"at": mount_path, "config": config}, name)

    def mount_device(self, path: str, mount_path: str | None = None, perm: str = "rwm") -> None:
        """Mount a device of the node; makes the process privileged."""
        self._mount({"at": mount_path or path, "device": {"path": path, "perm": perm}}, None)

    def mount(self, text: str) -> None:
        """Mount from TorchX's text form ``type=bind|volume|device,src=...,dst=...[,readonly][,perm=...]``."""
        self._add_mount({"text": text})

    def _mount(self, mount: Data, name: str | None) -> None:
        self._add_mount({**mount, "name": name} if name is not None else mount)
