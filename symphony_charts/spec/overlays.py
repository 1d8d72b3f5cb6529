"""Overlays become fields of the experiment where there is one; the rest stays an overlay.

An overlay is the more specific word: its value takes the place of the field's, and maps are added to. The overlay of a
pod comes after those of its processes; what it says of a container of the pod is said of that process.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from typing import TypeVar

import msgspec

from symphony_charts.formats.data import maps, sub
from symphony_charts.formats.overlay import merge_overlay
from symphony_charts.spec.model import Experiment, PodSettings, Probe, Process, ProcessGroup, Toleration
from symphony_charts.spec.overlay_fields import (
    ADDED,
    Data,
    container_fields,
    mount_field,
    pod_fields,
    probe_field,
    volume_field,
)
from symphony_charts.spec.shells import DEFAULT_SHELL, shell_argv
from symphony_charts.spec.sources import AnyVolume, EnvValue, Mount

__all__ = ["with_overlays_as_fields"]

_Settings = TypeVar("_Settings", bound=PodSettings)

_TYPES: dict[str, object] = {"env": dict[str, EnvValue], "tolerations": list[Toleration]}


def with_overlays_as_fields(experiment: Experiment) -> Experiment:
    """`experiment` with nothing in its overlays that a field could say; doing it twice changes nothing."""
    pods: list[ProcessGroup | Process] = [*experiment.groups.values(), *experiment.processes.values()]
    if not any(pod.pod_overlay or any(member.container_overlay for member in _members(pod)) for pod in pods):
        return experiment
    groups = {name: _group(group) for name, group in experiment.groups.items()}
    lone = {name: _lone(name, process) for name, process in experiment.processes.items()}
    volumes = dict(experiment.volumes)
    settled: list[ProcessGroup | Process] = [*groups.values(), *lone.values()]
    for pod in settled:
        for name, volume in _mounted_volumes(pod):
            volumes.setdefault(name, volume)
    return msgspec.structs.replace(
        experiment,
        groups={name: _group_with_mounts(group, volumes) for name, group in groups.items()},
        processes={name: _lone_with_mounts(process, volumes) for name, process in lone.items()},
        volumes=volumes,
    )


def _members(pod: ProcessGroup | Process) -> list[Process]:
    return list(pod.processes.values()) if isinstance(pod, ProcessGroup) else [pod]


# --- pods and their containers ---------------------------------------------------------------------------------------


def _group(group: ProcessGroup) -> ProcessGroup:
    group, own = _pod(group, group.processes)
    processes = {name: _container(process, own.get(name, ())) for name, process in group.processes.items()}
    return msgspec.structs.replace(group, processes=processes)


def _lone(name: str, process: Process) -> Process:
    process, own = _pod(process, {name: process})
    return _container(process, own.get(name, ()))


def _pod(pod: _Settings, processes: Mapping[str, Process]) -> tuple[_Settings, dict[str, list[Data]]]:
    """The pod with its own fields, and what its overlay says of its `processes`."""
    fields, rest = pod_fields(pod.pod_overlay)
    own: dict[str, list[Data]] = {}
    spec = dict(sub(rest, "spec"))
    is_finite = any(process.lifecycle == "finite" for process in processes.values())
    sidecars = [name for name, process in processes.items() if is_finite and process.lifecycle == "service"]
    for key, names in (("containers", list(processes)), ("initContainers", sidecars)):
        listed = spec.get(key)
        if not isinstance(listed, list):
            continue
        foreign = []
        for item in listed:
            if isinstance(item, dict) and item.get("name") in names:
                own.setdefault(item["name"], []).append({part: item[part] for part in item if part != "name"})
            else:
                foreign.append(item)
        spec = _put(spec, key, foreign)
    rest = _put(rest, "spec", spec) if isinstance(rest.get("spec"), dict) else rest
    return msgspec.structs.replace(_with_fields(pod, fields), pod_overlay=rest), own


def _container(process: Process, more: Iterable[Data]) -> Process:
    """The process with the fields that its overlay and `more` of them mean, the last word last."""
    left: Data = {}
    for overlay in (process.container_overlay, *more):
        # The times of a probe wait for the overlay that says what is asked.
        waiting: Data = (
            {"readinessProbe": left.pop("readinessProbe")} if "readinessProbe" in {*left} & {*overlay} else {}
        )
        process, fields, rest = _overlaid(process, merge_overlay(waiting, overlay))
        left = merge_overlay(_without_variables(left, list(sub(fields, "env"))), rest)
    return msgspec.structs.replace(process, container_overlay=left)


def _overlaid(process: Process, overlay: Mapping[str, object]) -> tuple[Process, Data, Data]:
    rest = dict(overlay)
    # What an overlay asks for is not lowered by `reserve`, which a field would be.
    exact = {"resources": rest.pop("resources")} if process.reserve and "resources" in rest else {}
    if process.cmds is not None and "command" not in rest and isinstance(rest.get("args"), list):
        # Arguments behind shell lines are those of the shell.
        script = "\n".join([*process.preamble, *process.cmds])
        command = [*shell_argv(process.shell), script]
        process = msgspec.structs.replace(process, command=command, cmds=None, preamble=[], shell=DEFAULT_SHELL)
    fields, rest = container_fields(rest)
    process = _with_fields(process, fields)
    ready = msgspec.to_builtins(process.ready) if isinstance(process.ready, Probe) else {}
    probe = probe_field(ready, sub(rest, "readinessProbe"), {*process.binds, *process.exposes})
    if probe is not None:
        process = msgspec.structs.replace(process, ready=msgspec.convert(probe, Probe))
        del rest["readinessProbe"]
    foreign = _names(rest, "env")
    if not foreign.isdisjoint(process.env):
        env = {name: value for name, value in process.env.items() if name not in foreign}
        process = msgspec.structs.replace(process, env=env)
    return process, fields, {**rest, **exact}


def _with_fields(record: _Settings, fields: Mapping[str, object]) -> _Settings:
    changes: Data = {}
    for field, value in fields.items():
        typed = msgspec.convert(value, _TYPES[field]) if field in _TYPES else value
        changes[field] = {**getattr(record, field), **typed} if field in ADDED else typed  # type: ignore[dict-item] # a map
    return msgspec.structs.replace(record, **changes)


def _without_variables(overlay: Data, names: Collection[str]) -> Data:
    entries = overlay.get("env")
    if not isinstance(entries, list):
        return overlay
    left = [item for item in entries if not isinstance(item, dict) or item.get("name") not in names]
    return _put(overlay, "env", left)


# --- volumes and mounts ----------------------------------------------------------------------------------------------


def _mounted_volumes(pod: ProcessGroup | Process) -> Iterator[tuple[str, AnyVolume]]:
    """The volumes that the pod's overlay declares as the experiment could, and that a process of the pod mounts."""
    mounted = {mount.volume for process in _members(pod) for mount in process.mounts}
    for process in _members(pod):
        fields = map(mount_field, maps(process.container_overlay, "volumeMounts"))
        mounted |= {str(field.get("volume")) for field in fields if field is not None}
    for item in maps(sub(pod.pod_overlay, "spec"), "volumes"):
        field = volume_field(item)
        name = item.get("name")
        if field is not None and isinstance(name, str) and name in mounted:
            yield name, msgspec.convert(field, AnyVolume)


def _group_with_mounts(group: ProcessGroup, volumes: Mapping[str, AnyVolume]) -> ProcessGroup:
    overlay, usable = _without_volumes(group, volumes)
    processes = {name: _with_mounts(process, usable) for name, process in group.processes.items()}
    return msgspec.structs.replace(group, pod_overlay=overlay, processes=processes)


def _lone_with_mounts(process: Process, volumes: Mapping[str, AnyVolume]) -> Process:
    overlay, usable = _without_volumes(process, volumes)
    return _with_mounts(msgspec.structs.replace(process, pod_overlay=overlay), usable)


def _without_volumes(pod: ProcessGroup | Process, volumes: Mapping[str, AnyVolume]) -> tuple[Data, set[str]]:
    """The pod's overlay without the volumes that are the experiment's, whose names come with it.

    A volume of which the overlay says something else stays there, and so do the mounts of it.
    """
    taken = [name for name, volume in _mounted_volumes(pod) if volumes[name] == volume]
    overlay: Data = dict(pod.pod_overlay)
    spec = sub(overlay, "spec")
    listed = spec.get("volumes")
    if not isinstance(listed, list):
        return overlay, set(volumes)
    left = [item for item in listed if not isinstance(item, dict) or item.get("name") not in taken]
    spec = _put(spec, "volumes", left)
    return _put(overlay, "spec", spec), set(volumes) - _names(spec, "volumes")


def _with_mounts(process: Process, volumes: Container[str]) -> Process:
    """The process with the mounts of `volumes` that its overlay adds or changes."""
    listed = process.container_overlay.get("volumeMounts")
    if not isinstance(listed, list):
        return process
    mounts = {mount.at: mount for mount in process.mounts}
    foreign = []
    for item in listed:
        field = mount_field(item) if isinstance(item, dict) else None
        if field is not None and field["at"] in mounts:
            field = {**msgspec.to_builtins(mounts[str(field["at"])]), **field}
        if field is not None and field.get("volume") in volumes:
            mounts[str(field["at"])] = msgspec.convert(field, Mount)
        else:
            foreign.append(item)
    overlay = _put(process.container_overlay, "volumeMounts", foreign)
    return msgspec.structs.replace(process, mounts=list(mounts.values()), container_overlay=overlay)


def _names(data: Mapping[str, object], key: str) -> set[str]:
    """The names of the items in the list at `key`."""
    return {name for item in maps(data, key) if isinstance(name := item.get("name"), str)}


def _put(data: Mapping[str, object], key: str, value: object) -> Data:
    """`data` with `value` at `key`, in its place; without the key if nothing is left."""
    return {name: value if name == key else old for name, old in data.items() if name != key or value}
