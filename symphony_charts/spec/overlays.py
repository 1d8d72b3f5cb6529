"""Convert overlays to fields of the experiment where possible; the rest stays an overlay.

An overlay is more specific than a field: its value wins, and its maps are merged in. The overlay of a pod is applied
after those of its processes; its settings for a container apply to that process.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from typing import TypeVar

import msgspec

from symphony_charts.formats.data import maps, merge_overlay, sub
from symphony_charts.formats.names import join
from symphony_charts.spec.model import Experiment, PodSettings, Process, ProcessGroup
from symphony_charts.spec.overlay_fields import (
    ADDED,
    CONTAINER_WORDS,
    POD_WORDS,
    Data,
    container_fields,
    mount_field,
    pod_fields,
    probe_field,
    volume_field,
)
from symphony_charts.spec.sources import AnyVolume, Mount
from symphony_charts.spec.variable_names import DEFAULT_SHELL, shell_argv

_Settings = TypeVar("_Settings", bound=PodSettings)
_Pod = TypeVar("_Pod", ProcessGroup, Process)


def with_overlays_as_fields(experiment: Experiment) -> Experiment:
    """Return `experiment` without overlay values that a field can hold. Idempotent."""
    pods: list[ProcessGroup | Process] = [*experiment.groups.values(), *experiment.processes.values()]
    if not any(pod.pod_overlay or any(member.container_overlay for member in _members(pod)) for pod in pods):
        return experiment
    groups = {name: _settled(name, group) for name, group in experiment.groups.items()}
    lone = {name: _settled(name, process) for name, process in experiment.processes.items()}
    volumes = dict(experiment.volumes)
    settled: list[ProcessGroup | Process] = [*groups.values(), *lone.values()]
    for pod in settled:
        for name, volume in _mounted_volumes(pod):
            volumes.setdefault(name, volume)
    return msgspec.structs.replace(
        experiment,
        groups={name: _with_volumes(name, group, volumes) for name, group in groups.items()},
        processes={name: _with_volumes(name, process, volumes) for name, process in lone.items()},
        volumes=volumes,
    )


def _members(pod: ProcessGroup | Process) -> list[Process]:
    return list(pod.processes.values()) if isinstance(pod, ProcessGroup) else [pod]


def _each(name: str, pod: _Pod, change: Callable[[str, Process], Process]) -> _Pod:
    if isinstance(pod, ProcessGroup):
        processes = {member: change(member, process) for member, process in pod.processes.items()}
        return msgspec.structs.replace(pod, processes=processes)
    return change(name, pod)


# --- pods and their containers ---------------------------------------------------------------------------------------


def _settled(name: str, pod: _Pod) -> _Pod:
    processes = pod.processes if isinstance(pod, ProcessGroup) else {name: pod}
    fields, rest = pod_fields(pod.pod_overlay)
    own: dict[str, list[Data]] = {}
    spec = dict(sub(rest, "spec"))
    is_finite = any(process.lifecycle == "finite" for process in processes.values())
    sidecars = [each for each, process in processes.items() if is_finite and process.lifecycle == "service"]
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
    pod = msgspec.structs.replace(_with_fields(pod, fields), pod_overlay=rest)
    return _each(name, pod, lambda member, process: _container(process, own.get(member, ())))


def _container(process: Process, more: Iterable[Data]) -> Process:
    """Return the process with the fields of its overlay and of `more`; the last one wins."""
    left: Data = {}
    for overlay in (process.container_overlay, *more):
        # The times of a probe wait for the overlay with its handler.
        waiting: Data = (
            {"readinessProbe": left.pop("readinessProbe")} if "readinessProbe" in {*left} & {*overlay} else {}
        )
        process, fields, rest = _overlaid(process, merge_overlay(waiting, overlay))
        left = merge_overlay(_without_variables(left, list(sub(fields, "env"))), rest)
    return msgspec.structs.replace(process, container_overlay=left)


def _overlaid(process: Process, overlay: Mapping[str, object]) -> tuple[Process, Data, Data]:
    rest = dict(overlay)
    # Keep resources in the overlay: `reserve` would lower them in a field.
    exact = {"resources": rest.pop("resources")} if process.reserve and "resources" in rest else {}
    if process.cmds is not None and "command" not in rest and isinstance(rest.get("args"), list):
        # Arguments after shell lines belong to the shell.
        script = "\n".join([*process.preamble, *process.cmds])
        command = [*shell_argv(process.shell), script]
        process = msgspec.structs.replace(process, command=command, cmds=None, preamble=[], shell=DEFAULT_SHELL)
    fields, rest = container_fields(rest)
    process = _with_fields(process, fields)
    probe = probe_field(process.ready, sub(rest, "readinessProbe"), {*process.binds, *process.exposes})
    if probe is not None:
        process = msgspec.structs.replace(process, ready=probe)
        del rest["readinessProbe"]
    foreign = _names(rest, "env")
    if not foreign.isdisjoint(process.env):
        env = {name: value for name, value in process.env.items() if name not in foreign}
        process = msgspec.structs.replace(process, env=env)
    return process, fields, {**rest, **exact}


def _with_fields(record: _Settings, fields: Mapping[str, object]) -> _Settings:
    changes = {
        field: {**getattr(record, field), **value} if field in ADDED and isinstance(value, dict) else value
        for field, value in fields.items()
    }
    return msgspec.structs.replace(record, **changes)


def _without_variables(overlay: Data, names: Collection[str]) -> Data:
    entries = overlay.get("env")
    if not isinstance(entries, list):
        return overlay
    left = [item for item in entries if not isinstance(item, dict) or item.get("name") not in names]
    return _put(overlay, "env", left)


# --- volumes and mounts ----------------------------------------------------------------------------------------------


def _mounted_volumes(pod: ProcessGroup | Process) -> Iterator[tuple[str, AnyVolume]]:
    """Yield the volumes of the pod's overlay that the experiment can declare and that a process mounts."""
    mounted = {mount.volume for process in _members(pod) for mount in process.mounts}
    for process in _members(pod):
        fields = map(mount_field, maps(process.container_overlay, "volumeMounts"))
        mounted |= {str(field.get("volume")) for field in fields if field is not None}
    for item in maps(sub(pod.pod_overlay, "spec"), "volumes"):
        field = volume_field(item)
        name = item.get("name")
        if field is not None and isinstance(name, str) and name in mounted:
            yield name, field


def _with_volumes(name: str, pod: _Pod, volumes: Mapping[str, AnyVolume]) -> _Pod:
    """Return the pod with mounts of `volumes`, and without these volumes in its overlay.

    A volume with different content in the overlay stays there, with its mounts.
    """
    usable = set(volumes)
    spec = sub(pod.pod_overlay, "spec")
    if isinstance(listed := spec.get("volumes"), list):
        taken = [each for each, volume in _mounted_volumes(pod) if volumes[each] == volume]
        left = [item for item in listed if not isinstance(item, dict) or item.get("name") not in taken]
        spec = _put(spec, "volumes", left)
        pod = msgspec.structs.replace(pod, pod_overlay=_put(pod.pod_overlay, "spec", spec))
        usable -= _names(spec, "volumes")
    return _each(name, pod, lambda _, process: _with_mounts(process, usable))


def _with_mounts(process: Process, volumes: Container[str]) -> Process:
    """Return the process with the mounts of `volumes` that its overlay adds or changes."""
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
    return {name for item in maps(data, key) if isinstance(name := item.get("name"), str)}


def _put(data: Mapping[str, object], key: str, value: object) -> Data:
    """Return `data` with `value` at `key`; without the key if `value` is empty."""
    return {name: value if name == key else old for name, old in data.items() if name != key or value}


# --- from a field back to the overlay --------------------------------------------------------------------------------

_PATH = re.compile(
    r"(?:groups\.(?P<group>[^.]+))?\.?(?:processes\.(?P<process>[^.]+))?\.(?P<field>\w+)(?P<rest>[.\[].*)?"
)
_CONTAINER_WORDS = {field: path for path, (field, _) in CONTAINER_WORDS.items()} | {
    "cmds": ("args",),
    "gpus": ("resources",),
    "mounts": ("volumeMounts",),
    "ready": ("readinessProbe",),
}
_POD_WORDS = {field: path for path, (field, _) in POD_WORDS.items()} | {
    key: ("spec", key) for key in ("affinity", "topologySpreadConstraints")
}


def written_at(experiment: Experiment, path: str) -> str:
    """Return the path of the overlay that set the field at `path` of a finished experiment; `path` if none did.

    `experiment` is the experiment as written. If several overlays set the field, the last one counts.
    """
    match = _PATH.fullmatch(path)
    if match is None:
        return path
    group, name = experiment.groups.get(match["group"] or ""), match["process"] or ""
    process = (group.processes if group is not None else experiment.processes).get(name)
    pod = group if group is not None else process
    where = f"groups.{match['group']}" if group is not None else f"processes.{name}"
    found = path
    for overlay, at, table in _overlays(pod, process, where, path[: match.start("field") - 1], name):
        words, rest = table.get(match["field"]), "" if match["field"] == "ready" else match["rest"] or ""
        if match["field"] == "container_overlay" and (inner := re.match(r"\.(\w+)", rest)):
            words, rest = (inner[1],), rest[inner.end() :]
        found = (_place(overlay, at, words, rest) if words else "") or found
    return found


def _overlays(
    pod: PodSettings | None, process: Process | None, where: str, own: str, name: str
) -> Iterator[tuple[dict[str, object], str, Mapping[str, tuple[str, ...]]]]:
    """Yield the overlays that may set fields of a process and its pod, with path and words; the last one wins."""
    if process is not None:
        yield process.container_overlay, f"{own}.container_overlay", _CONTAINER_WORDS
    if pod is None:
        return
    yield pod.pod_overlay, f"{where}.pod_overlay", _POD_WORDS
    for key in ("containers", "initContainers"):
        for index, item in enumerate(maps(sub(pod.pod_overlay, "spec"), key)):
            if process is not None and item.get("name") == name:
                yield item, f"{where}.pod_overlay.spec.{key}[{index}]", _CONTAINER_WORDS


def _place(overlay: dict[str, object], at: str, words: tuple[str, ...], rest: str) -> str:
    """Return the path of `words` in the `overlay` at `at`, plus the existing part of `rest`; empty if absent."""
    value, place, key = sub(overlay, *words[:-1]).get(words[-1]), ".".join((at, *words)), rest.removeprefix(".")
    if words == ("env",) and key and not key.startswith("["):
        names = [entry.get("name") for entry in maps(overlay, "env")]
        return join(place, names.index(key)) if key in names else ""
    if isinstance(value, dict) and key:
        return f"{place}{rest}" if key in value or key.partition(".")[0] in value else ""
    if value is None:
        return ""
    return f"{place}{rest}" if isinstance(value, list) and rest.startswith("[") else place
