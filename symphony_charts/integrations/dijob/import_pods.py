"""One pod of a DIJob becomes processes of the experiment, its ConfigMaps and scripts `configs` and `cmds`."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from symphony_charts.importers.common.names import UniqueNames
from symphony_charts.importers.common.pod import PodParts, read_pod
from symphony_charts.importers.common.shell import script_of
from symphony_charts.importers.dijob.draft import Draft
from symphony_charts.integrations.common.fields import Fields
from symphony_charts.integrations.common.scripts import lift
from symphony_charts.integrations.dijob.settings import CONTAINER
from symphony_charts.spec.sources import CONFIG_DIR
from symphony_charts.spec.variable_names import is_ours

__all__ = ["AddedPod", "add_pod"]


_LONGEST_CONTAINER = 63


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedPod:
    """A pod that was added: its name, its data in the draft (to be completed), its parts, its processes.

    `processes` go by the names of their containers.
    """

    name: str
    settings: dict[str, object]
    processes: dict[str, dict[str, object]]
    parts: PodParts


def add_pod(template: Fields, role: str, role_path: str, shared: list[Fields], draft: Draft) -> AddedPod:
    """Add the pod of `role` to the draft: a lone process of the role's name, or a group if it has more containers.

    `shared` are the job's volumes. Replicas, retries and what else belongs to the pod is the caller's to add.
    """
    parts = read_pod(template, draft.volumes, shared)
    name = draft.names.give(role, role_path, draft.longest_task)
    _lift_config_maps(parts, name, draft)
    for container, step in parts.steps.items():
        _read_script(step, parts.paths[container], draft)
        _drop_own_environment(step)
        draft.add_step(container, {**step, "groups": [name]}, parts.paths[container])
    for container, process in parts.processes.items():
        path = parts.paths[container]
        compile_step = _read_script(process, path, draft, may_split=True)
        _drop_own_environment(process)
        if compile_step is not None:
            _drop_own_environment(compile_step)
            draft.add_step(f"{name}-config", {**compile_step, "groups": [name]}, path)
    draft.image_pull_secrets += parts.image_pull_secrets
    if "labels" in parts.settings or "annotations" in parts.settings:
        what = "the operator drops labels and annotations of its pods; other workload kinds keep them"
        draft.log.changed(template.at("metadata"), what)
    return _place(name, parts, template, draft)


def _place(name: str, parts: PodParts, template: Fields, draft: Draft) -> AddedPod:
    if len(parts.processes) <= 1:
        container, process = next(iter(parts.processes.items()), ("", {}))
        process |= parts.settings
        draft.processes[name] = process
        draft.origins[f"processes.{name}"] = next((parts.paths[one] for one in parts.processes), template.path)
        draft.place(name, container or CONTAINER, CONTAINER)
        return AddedPod(name=name, settings=process, processes={container: process}, parts=parts)
    names = UniqueNames(draft.log)
    inner: dict[str, object] = {}
    for container, process in parts.processes.items():
        free = names.give(container, f"{parts.paths[container]}.name", _LONGEST_CONTAINER)
        inner[free] = process
        draft.origins[f"groups.{name}.processes.{free}"] = parts.paths[container]
        draft.place(f"{name}/{free}", container, free)
    group: dict[str, object] = {"processes": inner, **parts.settings}
    draft.groups[name] = group
    draft.origins[f"groups.{name}"] = template.path
    return AddedPod(name=name, settings=group, processes=parts.processes, parts=parts)


def _drop_own_environment(process: dict[str, object]) -> None:
    """Leave out the variables that every process of an experiment has anyway."""
    env = process.get("env")
    if isinstance(env, dict):
        kept = {name: value for name, value in env.items() if not is_ours(name)}
        process["env"] = kept
        if not kept:
            del process["env"]


def _lift_config_maps(parts: PodParts, pod: str, draft: Draft) -> None:
    """Take the files of mounted ConfigMaps into `configs`, and see that the pod finds them where it looks.

    Configuration files stand in one folder of every process. A ConfigMap mounted there needs nothing more; for any
    other place a step copies the files to an empty volume before the pod's processes start.
    """
    containers = [*parts.steps.items(), *parts.processes.items()]
    filled: set[str] = set()
    for container, process in containers:
        kept: list[object] = []
        mounts = process.get("mounts")
        for mount in mounts if isinstance(mounts, list) else []:
            if not isinstance(mount, dict) or not _stands_in_file(mount, draft):
                kept.append(mount)
            elif mount["at"] != CONFIG_DIR:
                name = draft.volumes.declare(f"files-{mount['volume']}", {"type": "empty_dir"})
                if name not in filled:
                    filled.add(name)
                    _add_copy(name, str(mount["volume"]), process, pod, parts.paths[container], draft)
                kept.append({**mount, "volume": name})
            else:
                _files(str(mount["volume"]), draft)
        if kept:
            process["mounts"] = kept
        else:
            process.pop("mounts", None)


def _stands_in_file(mount: dict[str, object], draft: Draft) -> bool:
    """Return True if what is mounted is a ConfigMap of the file."""
    volume = draft.volumes.declared.get(str(mount["volume"]))
    return isinstance(volume, dict) and volume.get("type") == "config" and volume.get("config") in draft.config_maps


def _add_copy(volume: str, source: str, process: dict[str, object], pod: str, path: str, draft: Draft) -> None:
    folder = f"/mnt/{volume}"
    copies = [
        f'mkdir -p "{folder}/{target.rpartition("/")[0]}"\ncp "$SYMPH_CONFIG_DIR/{name}" "{folder}/{target}"'
        if "/" in target
        else f'cp "$SYMPH_CONFIG_DIR/{name}" "{folder}/{target}"'
        for target, name in _files(source, draft).items()
    ]
    step = {"cmds": copies or ["true"], "mounts": [{"volume": volume, "at": folder}], "groups": [pod]}
    if "image" in process:
        step["image"] = process["image"]
    draft.add_step(volume, step, path)


def _files(volume: str, draft: Draft) -> dict[str, str]:
    """The files of a ConfigMap's volume: path in the volume to name in `configs`."""
    content = draft.volumes.declared[volume]
    if not isinstance(content, dict):
        return {}
    held = draft.config_maps[str(content["config"])]
    draft.used_config_maps.add(str(content["config"]))
    draft.lifted_volumes.add(volume)
    data = held.text_map("data")
    held.skip("apiVersion", "metadata", "kind", "immutable")
    held.note_unread("of a ConfigMap is not carried over")
    items = content.get("items")
    chosen = items if isinstance(items, dict) else {key: key for key in data}
    return {str(path): draft.add_config(str(key), data[key]) for key, path in chosen.items() if key in data}


# DI-engine's old mode compiles the configuration to FILE.pkl, which all roles then read from a shared volume.
_COMPILE = re.compile(r"\s*ding\s+(?:\S+\s+)*?--module\s+config\b")
_CONFIG_ARGUMENT = re.compile(r"\s-c\s+(?P<file>[^\s;]+)")
_STEP_FIELDS = ("shell", "image", "env", "cwd", "mounts", "requests", "limits")


def _read_script(
    process: dict[str, object], path: str, draft: Draft, *, may_split: bool = False
) -> dict[str, object] | None:
    """Turn the shell script of a container into `cmds`, in place; files it writes go to the draft's `configs`.

    Returns the step that compiles the configuration, where `may_split` and its results are seen to lie on a volume.
    """
    script = script_of(_texts(process.get("command")), _texts(process.get("args")))
    if script is None:
        return None
    lifted = lift(script.text, draft.configs)
    draft.configs |= lifted.files
    for name in lifted.files:
        draft.log.changed(path, f"the file {name}, which the script writes, now stands in `configs`")
    for line in lifted.kept:
        what = (
            f"line {line} of the script writes a file that depends on variables, or has no plain name; it stays there"
        )
        draft.log.changed(path, what)
    script = replace(script, text=lifted.script)
    lines = script.lines
    if not lines:
        return None
    process.pop("command", None)
    process.pop("args", None)
    head = _compile_lines(lines, process) if may_split else []
    process["cmds"] = [*filter(_is_setting, lines[: len(head)]), *lines[len(head) :]]
    process["shell"] = script.shell_field
    if not head:
        return None
    draft.log.changed(path, "the configuration is compiled by a step of its own (`prepare`)")
    return {"cmds": head, **{key: process[key] for key in _STEP_FIELDS if key in process}}


def _compile_lines(lines: list[str], process: dict[str, object]) -> list[str]:
    """The first lines, which write and compile a configuration, if its place is seen to be on a volume."""
    count = 0
    for index, line in enumerate(lines):
        if _COMPILE.match(line):
            count = index + 1
        elif not _is_setting(line) and not line.startswith("cat < "):
            break
    head = [line.rstrip(" ;") for line in lines[:count]]
    compiled = _CONFIG_ARGUMENT.search(head[-1]) if head and count < len(lines) else None
    if compiled is None or any(mark in head[-1] for mark in ";|&"):
        return []
    result = compiled["file"].rpartition("/")[2] + ".pkl"
    later = re.search(rf"(?P<folder>/\S*)/{re.escape(result)}\b", "\n".join(lines[count:]))
    folder = later["folder"] if later else process.get("cwd")
    return head if isinstance(folder, str) and _is_mounted(folder, process.get("mounts")) else []


def _is_setting(line: str) -> bool:
    """Return True if `line` sets how the shell works, which holds for both halves of a script."""
    return line.startswith("set ")


def _is_mounted(folder: str, mounts: object) -> bool:
    if not isinstance(mounts, list):
        return False
    places = [str(mount.get("at")).rstrip("/") for mount in mounts if isinstance(mount, dict)]
    return any(mount_path and (folder == mount_path or folder.startswith(f"{mount_path}/")) for mount_path in places)


def _texts(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []
