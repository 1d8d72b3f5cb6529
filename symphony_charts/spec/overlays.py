"""Convert overlays to fields of the experiment where possible; the rest stays an overlay.

An overlay is more specific than a field: its value wins, and its maps are merged in. The overlay of a pod is applied
after those of its processes; its settings for a container apply to that process.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from typing import TypeVar

import msgspec

from symphony_charts.formats.data import maps, merge_overlay, sub
from symphony_charts.formats.names import join
from symphony_charts.spec.model import Experiment, PodSettings, Process, ProcessGroup
from symphony_charts.spec.overlay_fields import (
    CONTAINER_WORDS,
    POD_WORDS,
    Data,
    container_fields,
    laid_over,
    merge_probe,
    mount_field,
    pod_fields,
    probe_field,
    put,
    volume_field,
)
from symphony_charts.spec.sources import AnyVolume, Mount
from symphony_charts.spec.variable_names import DEFAULT_SHELL, shell_argv
from symphony_charts.system.records import convert

_Pod = TypeVar("_Pod", ProcessGroup, Process)


def with_overlays_as_fields(experiment: Experiment) -> Experiment:
    """Return `experiment` without overlay values that a field can hold. Idempotent."""
    pods: list[ProcessGroup | Process] = [*experiment.groups.values(), *experiment.processes.values()]
    if not any(pod.pod_overlay or any(each.container_overlay for each in _members(pod, "").values()) for pod in pods):
        return experiment
    groups = {name: _settled(name, group) for name, group in experiment.groups.items()}
    lone = {name: _settled(name, process) for name, process in experiment.processes.items()}
    volumes = dict(experiment.volumes)
    pods = [*groups.values(), *lone.values()]
    for pod in pods:
        for name, volume in _mounted_volumes(pod).items():
            volumes.setdefault(name, volume)
    return msgspec.structs.replace(
        experiment,
        groups={name: _with_volumes(name, group, volumes) for name, group in groups.items()},
        processes={name: _with_volumes(name, process, volumes) for name, process in lone.items()},
        volumes=volumes,
    )


def _members(pod: ProcessGroup | Process, name: str) -> dict[str, Process]:
    return pod.processes if isinstance(pod, ProcessGroup) else {name: pod}


def _with_members(pod: _Pod, members: Mapping[str, Process], name: str, overlay: Data) -> _Pod:
    if isinstance(pod, ProcessGroup):
        return msgspec.structs.replace(pod, processes=dict(members), pod_overlay=overlay)
    return msgspec.structs.replace(members[name], pod_overlay=overlay)


# --- pods and their containers ---------------------------------------------------------------------------------------


def _settled(name: str, pod: _Pod) -> _Pod:
    fields, rest = pod_fields(pod.pod_overlay)
    pod = msgspec.structs.replace(pod, **laid_over(pod, fields))
    processes = _members(pod, name)
    overlays = {each: process.container_overlay for each, process in processes.items()}
    is_finite = any(process.lifecycle == "finite" for process in processes.values())
    sidecars = [each for each, process in processes.items() if is_finite and process.lifecycle == "service"]
    for key, names in (("containers", list(processes)), ("initContainers", sidecars)):
        listed = sub(rest, "spec").get(key)
        if not isinstance(listed, list):
            continue
        foreign = []
        for item in listed:
            if isinstance(item, dict) and item.get("name") in names:
                more = {part: item[part] for part in item if part != "name"}
                overlays[item["name"]] = _joined(overlays[item["name"]], more)
            else:
                foreign.append(item)
        rest = put(rest, ("spec", key), foreign or None)
    if rest.get("spec") == {}:
        del rest["spec"]
    members = {each: _overlaid(process, overlays[each]) for each, process in processes.items()}
    return _with_members(pod, members, name, rest)


def _joined(base: Mapping[str, object], over: Mapping[str, object]) -> Data:
    """Return two overlays of one container as one; a variable is replaced as a whole, as is the question of a probe."""
    names = _names(over, "env")
    if isinstance(listed := base.get("env"), list):
        kept = [item for item in listed if not isinstance(item, dict) or item.get("name") not in names]
        base = put(base, ("env",), kept or None)
    merged = merge_overlay(base, over)
    if isinstance(merged.get("readinessProbe"), dict):
        merged["readinessProbe"] = merge_probe(sub(base, "readinessProbe"), sub(over, "readinessProbe"))
    return merged


def _overlaid(process: Process, overlay: Mapping[str, object]) -> Process:
    """Return the process with fields in place of its overlays, which are `overlay`."""
    rest = dict(overlay)
    # Keep resources in the overlay: `reserve` would lower them in a field.
    exact = {"resources": rest.pop("resources")} if process.reserve and "resources" in rest else {}
    if process.cmds is not None and "command" not in rest and isinstance(rest.get("args"), list):
        # Arguments after shell lines belong to the shell.
        script = "\n".join([*process.preamble, *process.cmds])
        command = [*shell_argv(process.shell), script]
        process = msgspec.structs.replace(process, command=command, cmds=None, preamble=[], shell=DEFAULT_SHELL)
    fields, rest = container_fields(rest)
    process = msgspec.structs.replace(process, **laid_over(process, fields))
    probe = probe_field(process.ready, sub(rest, "readinessProbe"), {*process.binds, *process.exposes})
    if probe is not None:
        process = msgspec.structs.replace(process, ready=probe)
        del rest["readinessProbe"]
    foreign = _names(rest, "env")
    env = {name: value for name, value in process.env.items() if name not in foreign}
    return msgspec.structs.replace(process, env=env, container_overlay={**rest, **exact})


# --- volumes and mounts ----------------------------------------------------------------------------------------------


def _mounted_volumes(pod: ProcessGroup | Process) -> dict[str, AnyVolume]:
    """Return the volumes of the pod's overlay that the experiment can declare and that a process mounts."""
    mounted = set()
    for process in _members(pod, "").values():
        mounted |= {mount.volume for mount in process.mounts}
        fields = map(mount_field, maps(process.container_overlay, "volumeMounts"))
        mounted |= {str(field.get("volume")) for field in fields if field is not None}
    items = maps(sub(pod.pod_overlay, "spec"), "volumes")
    found = {str(item["name"]): volume_field(item) for item in items if item.get("name") in mounted}
    return {name: volume for name, volume in found.items() if volume is not None}


def _with_volumes(name: str, pod: _Pod, volumes: Mapping[str, AnyVolume]) -> _Pod:
    """Return the pod with mounts of `volumes`, and without these volumes in its overlay.

    A volume with different content in the overlay stays there, with its mounts.
    """
    overlay = pod.pod_overlay
    if isinstance(listed := sub(overlay, "spec").get("volumes"), list):
        taken = [each for each, volume in _mounted_volumes(pod).items() if volumes[each] == volume]
        left = [item for item in listed if not isinstance(item, dict) or item.get("name") not in taken]
        overlay = put(overlay, ("spec", "volumes"), left or None)
    usable = volumes.keys() - _names(sub(overlay, "spec"), "volumes")
    members = {each: _with_mounts(process, usable) for each, process in _members(pod, name).items()}
    return _with_members(pod, members, name, overlay)


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
            mounts[str(field["at"])] = convert(field, Mount)
        else:
            foreign.append(item)
    overlay = put(process.container_overlay, ("volumeMounts",), foreign or None)
    return msgspec.structs.replace(process, mounts=list(mounts.values()), container_overlay=overlay)


def _names(data: Mapping[str, object], key: str) -> set[str]:
    return {name for item in maps(data, key) if isinstance(name := item.get("name"), str)}


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
