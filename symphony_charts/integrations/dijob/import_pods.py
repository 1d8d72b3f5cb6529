"""Read the pod templates of a DIJob into the draft of an experiment."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from symphony_charts.formats.data import sub
from symphony_charts.formats.names import shorten
from symphony_charts.importers.report import Log
from symphony_charts.integrations.common.fields import LONGEST, Fields, UniqueNames, Volumes
from symphony_charts.integrations.common.pods import PodParts, read_pod
from symphony_charts.integrations.common.scripts import lift, script_of
from symphony_charts.integrations.dijob.settings import CONTAINER, MAX_TASK
from symphony_charts.spec.sources import CONFIG_DIR
from symphony_charts.spec.variable_names import is_ours


@dataclass(slots=True, kw_only=True)
class Draft:
    """Collect the data of the experiment; `origins` maps its paths to paths of the input."""

    log: Log
    config_maps: dict[str, Fields] = field(default_factory=dict)
    name: str = "dijob"
    namespace: str | None = None
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    workload: dict[str, object] = field(default_factory=dict)
    settings: dict[str, object] = field(default_factory=dict)
    tasks: dict[str, str] = field(default_factory=dict)
    compat: str | None = None
    containers: dict[str, str] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    processes: dict[str, object] = field(default_factory=dict)
    groups: dict[str, object] = field(default_factory=dict)
    prepare: dict[str, object] = field(default_factory=dict)
    configs: dict[str, str] = field(default_factory=dict)
    binaries: dict[str, str] = field(default_factory=dict)
    done_when: list[str] = field(default_factory=list)
    image_pull_secrets: list[str] = field(default_factory=list)
    volumes: Volumes = field(default_factory=Volumes)
    origins: dict[str, str] = field(default_factory=dict)
    used_config_maps: set[str] = field(default_factory=set)
    lifted_volumes: set[str] = field(default_factory=set)
    names: UniqueNames = field(init=False)

    def __post_init__(self) -> None:
        self.names = UniqueNames(self.log)

    def say(self, key: str, value: object) -> None:
        """Set a field of `workload.dijob`, unless the value is None."""
        if value is not None:
            self.settings[key] = value

    @property
    def longest_task(self) -> int:
        return min(LONGEST, MAX_TASK) if self.workload.get("kind") == "dijob" else LONGEST

    def place(self, ref: str, container: str, usual: str) -> None:
        """Record the next process in order, and the name of its container if it is not `usual`."""
        self.order.append(ref)
        if container != usual:
            self.containers[ref] = container

    def add_config(self, name: str, content: str, *, is_base64: bool = False) -> str:
        """Add a configuration file and return its name, numbered if another file has the same name."""
        stem, dot, suffix = name.partition(".")
        held, other = (self.binaries, self.configs) if is_base64 else (self.configs, self.binaries)
        free, count = name, 2
        while free in other or held.setdefault(free, content) != content:
            free, count = f"{stem}-{count}{dot}{suffix}", count + 1
        return free

    def add_step(self, name: str, step: dict[str, object], path: str) -> None:
        """Add a step that runs before the processes of some pods, under a free name; merge equal steps of two pods."""
        clean = UniqueNames.label(name)
        for step_so_far in self.prepare.values():
            if isinstance(step_so_far, dict) and {**step_so_far, "groups": []} == {**step, "groups": []}:
                step_so_far["groups"] += [pod for pod in _texts(step["groups"]) if pod not in step_so_far["groups"]]
                return
        free, count = clean, 2
        while free in self.prepare:
            free, count = shorten(f"{clean}-{count}", 60), count + 1
        if free != clean:
            self.log.changed(f"{path}.name", f'another step is named "{clean}"; this one is named "{free}"')
        self.prepare[free] = step
        self.origins[f"prepare.{free}"] = path

    def without_command(self) -> list[str]:
        """Return input paths of processes with several replicas that run their image's own command."""
        members = [
            (f"processes.{name}", sub(self.processes, name), sub(self.processes, name)) for name in self.processes
        ]
        for name in self.groups:
            pod = sub(self.groups, name)
            inner = sub(pod, "processes")
            members += [(f"groups.{name}.processes.{process}", pod, sub(inner, process)) for process in inner]
        return [
            self.origins[path]
            for path, pod, process in members
            if pod.get("replicas", 1) != 1 and not {"command", "cmds"} & set(process)
        ]

    def unused_config_maps(self) -> list[str]:
        return [name for name in self.config_maps if name not in self.used_config_maps]

    def data(self) -> dict[str, object]:
        data: dict[str, object] = {
            "name": self.name,
            "namespace": self.namespace,
            "groups": self.groups,
            "processes": self.processes,
            "order": self.order if self.order != self._usual_order() else [],
            "volumes": {name: v for name, v in self.volumes.declared.items() if name not in self.lifted_volumes},
            "configs": {name: {"text": text} for name, text in self.configs.items()}
            | {name: {"base64": content} for name, content in self.binaries.items()},
            "prepare": self.prepare,
            "done_when": self.done_when,
            "workload": self._workload(),
            "compat": self.compat,
            "image_pull_secrets": list(dict.fromkeys(self.image_pull_secrets)),
            "labels": self.labels,
            "annotations": self.annotations,
            # DI-engine starts all tasks at once; they find each other themselves.
            "local": {"start": "together"},
        }
        return {key: value for key, value in data.items() if value not in (None, {}, [])}

    def _usual_order(self) -> list[str]:
        grouped = [f"{name}/{process}" for name, group in self.groups.items() for process in sub(group, "processes")]
        return [*grouped, *self.processes]

    def _workload(self) -> dict[str, object]:
        maps = {"tasks": self.tasks, "containers": self.containers}
        settings = {**self.settings, **{key: value for key, value in maps.items() if value}}
        return {**self.workload, **({"dijob": settings} if settings else {})}


def _texts(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []


_LONGEST_CONTAINER = 63


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedPod:
    """A pod that was added: its name, its data in the draft (to be completed), its parts, its processes.

    `processes` are keyed by container name.
    """

    name: str
    settings: dict[str, object]
    processes: dict[str, dict[str, object]]
    parts: PodParts


def add_pod(template: Fields, role: str, role_path: str, shared: list[Fields], draft: Draft) -> AddedPod:
    """Add the pod of `role` to the draft: a lone process named after the role, or a group if it has more containers.

    `shared` are the job's volumes. The caller adds replicas, retries and other settings of the pod.
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
    """Remove variables that every process of an experiment has anyway."""
    env = process.get("env")
    if isinstance(env, dict):
        kept = {name: value for name, value in env.items() if not is_ours(name)}
        process["env"] = kept
        if not kept:
            del process["env"]


def _lift_config_maps(parts: PodParts, pod: str, draft: Draft) -> None:
    """Move the files of mounted ConfigMaps into `configs`, and keep them at their places in the pod.

    Every process has its configuration files in one folder. A ConfigMap mounted there needs no change; for any other
    place a step copies the files to an empty volume before the pod's processes start.
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
    """Return True if the mounted volume is a ConfigMap of the input file."""
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
    """Return the files of a ConfigMap's volume: path in the volume to name in `configs`."""
    content = draft.volumes.declared[volume]
    if not isinstance(content, dict):
        return {}
    held = draft.config_maps[str(content["config"])]
    draft.used_config_maps.add(str(content["config"]))
    draft.lifted_volumes.add(volume)
    data, binary = held.text_map("data"), held.text_map("binaryData")
    held.skip("apiVersion", "metadata", "kind", "immutable")
    held.note_unread("of a ConfigMap is not carried over")
    items = content.get("items")
    chosen = items if isinstance(items, dict) else {key: key for key in (*data, *binary)}
    files = {path: draft.add_config(key, data[key]) for key, path in chosen.items() if key in data}
    return files | {
        path: draft.add_config(key, binary[key], is_base64=True) for key, path in chosen.items() if key in binary
    }


# DI-engine's old mode compiles the configuration to FILE.pkl, which all roles then read from a shared volume.
_COMPILE = re.compile(r"\s*ding\s+(?:\S+\s+)*?--module\s+config\b")
_CONFIG_ARGUMENT = re.compile(r"\s-c\s+(?P<file>[^\s;]+)")
_STEP_FIELDS = ("shell", "image", "env", "cwd", "mounts", "requests", "limits")


def _read_script(
    process: dict[str, object], path: str, draft: Draft, *, may_split: bool = False
) -> dict[str, object] | None:
    """Convert the shell script of a container to `cmds`, in place; files that it writes go to the draft's `configs`.

    Returns the step that compiles the configuration, if `may_split` and the script shows that its result is on a
    volume.
    """
    script = script_of(_texts_of(process.get("command")), _texts_of(process.get("args")))
    if script is None:
        return None
    lifted = lift(script.text, draft.configs)
    draft.configs |= lifted.files
    for name in lifted.files:
        draft.log.changed(path, f"the script writes the file {name}; it is now in `configs`")
    for line in lifted.kept:
        what = f"line {line} of the script writes a file with variables or a computed name; it stays in the script"
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
    draft.log.changed(path, "a step (`prepare`) compiles the configuration")
    return {"cmds": head, **{key: process[key] for key in _STEP_FIELDS if key in process}}


def _compile_lines(lines: list[str], process: dict[str, object]) -> list[str]:
    """Return the first lines, which write and compile a configuration, if the result is on a volume."""
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
    """Return True if `line` sets shell options, which both halves of a script need."""
    return line.startswith("set ")


def _is_mounted(folder: str, mounts: object) -> bool:
    if not isinstance(mounts, list):
        return False
    places = [str(mount.get("at")).rstrip("/") for mount in mounts if isinstance(mount, dict)]
    return any(mount_path and (folder == mount_path or folder.startswith(f"{mount_path}/")) for mount_path in places)


def _texts_of(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []
