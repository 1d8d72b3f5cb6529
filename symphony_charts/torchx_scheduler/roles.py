"""The roles of an experiment are told in TorchX's terms: from the saved run here, from the objects on a cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from torchx.specs import BindMount, DeviceMount, Resource, Role, VolumeMount

from symphony_charts.clusters.base import Cluster
from symphony_charts.environment.entrypoint import entry_point
from symphony_charts.errors import NotFound
from symphony_charts.formats.data import maps, sub
from symphony_charts.formats.quantity import quantity
from symphony_charts.importers.torchx.macros import APP_ID_VARIABLES, MACROS
from symphony_charts.kubernetes.backend import KubeWatcher
from symphony_charts.local.history import load_saved
from symphony_charts.local.runs import find_run
from symphony_charts.spec.model import Experiment, Process
from symphony_charts.spec.sources import ClaimVolume, DeviceVolume, EnvSource, HostPathVolume
from symphony_charts.spec.variable_names import is_ours

__all__ = ["roles_of"]

_ROLE = "torchx.pytorch.org/role-name"
_PROCESS = "symph.dev/group"
_GPU = "nvidia.com/gpu"
_MEGA = 10**6


def roles_of(cluster: Cluster, name: str) -> dict[str, Role]:
    """The role that each lone process of an experiment came from, without the number of its replicas.

    What starts programs is said as they find it, behind the shell lines of ours that run before them.
    """
    watcher = cluster.watcher
    if isinstance(watcher, KubeWatcher):
        return _of_objects([*watcher.workloads(name), *watcher.pods(name)])
    try:
        return _of_experiment(load_saved(find_run(name)).experiment)
    except NotFound:
        return {}  # the run is just starting, or its saved spec is gone


# --- here -----------------------------------------------------------------------------------------------------------


def _of_experiment(experiment: Experiment) -> dict[str, Role]:
    return {name: _of_process(name, process, experiment) for name, process in experiment.processes.items()}


def _of_process(name: str, process: Process, experiment: Experiment) -> Role:
    start = entry_point(process)
    asked = {**process.requests, **process.limits, **({_GPU: str(process.gpus)} if process.gpus else {})}
    return _role(
        process.labels.get(_ROLE, name),
        process.image or experiment.image or "",
        [*(start.command or []), *(start.args or [])],
        {key: _field(value) if isinstance(value, EnvSource) else value for key, value in process.env.items()},
        asked,
        port_map={key: port for key, port in process.binds.items() if port is not None},
        mounts=[mount for mount in (_mount_here(item, experiment) for item in process.mounts) if mount is not None],
    )


def _field(source: EnvSource) -> str:
    return f"[FIELD_PATH]{source.field}" if source.field is not None else ""


def _mount_here(mount: Any, experiment: Experiment) -> BindMount | VolumeMount | DeviceMount | None:
    volume = experiment.volumes.get(mount.volume)
    if isinstance(volume, HostPathVolume):
        return BindMount(src_path=volume.path, dst_path=mount.at, read_only=mount.read_only)
    if isinstance(volume, ClaimVolume):
        return VolumeMount(src=volume.claim, dst_path=mount.at, read_only=mount.read_only)
    if isinstance(volume, DeviceVolume):
        return DeviceMount(src_path=volume.path, dst_path=mount.at, permissions=volume.perm)
    return None


# --- on a cluster ---------------------------------------------------------------------------------------------------


def _of_objects(objects: Sequence[Mapping[str, Any]]) -> dict[str, Role]:
    roles: dict[str, Role] = {}
    for item in objects:
        for labels, spec in _pods_in(item):
            containers = maps(spec, "containers")
            if _PROCESS in labels and containers:
                name = str(labels[_PROCESS])
                roles.setdefault(name, _of_container(str(labels.get(_ROLE, name)), containers[0], spec))
    return roles


def _pods_in(item: object) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Labels and spec of every pod, or template of one, that an object of any kind holds."""
    if isinstance(item, list):
        for part in item:
            yield from _pods_in(part)
    elif isinstance(item, dict):
        spec = item.get("spec")
        if isinstance(spec, dict) and isinstance(spec.get("containers"), list):
            yield sub(item, "metadata", "labels"), spec
        else:
            for part in item.values():
                yield from _pods_in(part)


def _of_container(name: str, container: Mapping[str, Any], spec: Mapping[str, Any]) -> Role:
    resources = sub(container, "resources")
    return _role(
        name,
        str(container.get("image", "")),
        [*container.get("command", []), *container.get("args", [])],
        {str(entry["name"]): _value(entry) for entry in maps(container, "env")},
        {**sub(resources, "requests"), **sub(resources, "limits")},
        port_map={str(port.get("name")): int(str(port["containerPort"])) for port in maps(container, "ports")},
        mounts=[mount for mount in (_mount_there(item, spec) for item in maps(container, "volumeMounts")) if mount],
    )


def _value(entry: Mapping[str, Any]) -> str:
    path = sub(entry, "valueFrom", "fieldRef").get("fieldPath")
    return f"[FIELD_PATH]{path}" if path else str(entry.get("value", ""))


def _mount_there(mount: Mapping[str, Any], spec: Mapping[str, Any]) -> BindMount | VolumeMount | None:
    volume = next((item for item in maps(spec, "volumes") if item.get("name") == mount["name"]), {})
    read_only = mount.get("readOnly") is True
    if path := sub(volume, "hostPath").get("path"):
        return BindMount(src_path=str(path), dst_path=str(mount["mountPath"]), read_only=read_only)
    if claim := sub(volume, "persistentVolumeClaim").get("claimName"):
        return VolumeMount(src=str(claim), dst_path=str(mount["mountPath"]), read_only=read_only)
    return None


# --- both -----------------------------------------------------------------------------------------------------------


def _role(
    name: str, image: str, argv: list[str], env: Mapping[str, str], asked: Mapping[str, object], **fields: Any
) -> Role:
    entrypoint, *args = _without_preamble(argv) or [""]
    return Role(
        name=name,
        image=image,
        entrypoint=entrypoint,
        args=[_with_macros(arg) for arg in args],
        env={
            key: _with_macros(value) for key, value in env.items() if not is_ours(key) and key not in APP_ID_VARIABLES
        },
        resource=_resource(asked),
        **fields,
    )


def _with_macros(text: str) -> str:
    """An argument or value with the macros that the AppDef has, which pods find in their environment."""
    for macro in ("app_id", "replica_id"):
        text = text.replace(MACROS[macro], f"${{{macro}}}")
    return text


def _without_preamble(argv: list[str]) -> list[str]:
    """The program behind the shell that `entry_point` puts in front of it for the lines of a preamble."""
    shell = entry_point(Process(command=["x"], preamble=["x"])).command or []
    front = len(shell) - len(["script", "sh", "x"])
    is_wrapped = argv[:front] == shell[:front] and len(argv) > front + 2 and argv[front].endswith('exec "$@"')
    return argv[front + 2 :] if is_wrapped else argv


def _resource(asked: Mapping[str, object]) -> Resource:
    """Return the requests in TorchX's units; -1 is what is not set."""
    amounts = {}
    for key, amount in asked.items():
        with contextlib.suppress(ValueError):
            amounts[key] = quantity(str(amount))
    cpu, memory = amounts.pop("cpu", None), amounts.pop("memory", None)
    return Resource(
        cpu=-1 if cpu is None else int(cpu) if cpu == int(cpu) else float(cpu),
        gpu=int(amounts.pop(_GPU, 0)),
        memMB=-1 if memory is None else int(memory / _MEGA),
        devices={key: int(amount) for key, amount in amounts.items() if "/" in key},
    )
