"""Expand the shorthand of spec files to the forms of the records.

Only values in a short form change; the later type check sees everything else as written. docs/spec.md lists the
forms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from symphony_charts.errors import Problem
from symphony_charts.formats.names import join
from symphony_charts.formats.yaml_read import plain, scalar_text
from symphony_charts.spec.shorthand_fields import (
    VolumeTable,
    assignment,
    by_field,
    exposures,
    inline_volume,
    parse_mounts,
    port_range,
    probe,
    restart,
    shell,
    texts,
    tolerations,
    volume_kinds,
    words,
    workload,
)

Data: TypeAlias = "dict[str, object]"
_Expander: TypeAlias = "Callable[[_Expansion, object, str], object]"

GPU_RESOURCE = "nvidia.com/gpu"
_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - the container path of POSIX shared memory


def expand(data: Data) -> tuple[Data, list[Problem]]:
    """Return `data` with all shorthand expanded, and the faults found on the way. `data` stays unchanged."""
    expansion = _Expansion(data)
    return expansion.experiment(data), expansion.problems


class _Expansion:
    def __init__(self, data: Data) -> None:
        self.problems: list[Problem] = []
        volumes = data.get("volumes")
        named = {key: self._volume(value) for key, value in volumes.items()} if isinstance(volumes, dict) else {}
        self._volumes = VolumeTable(named)

    def experiment(self, data: Data) -> Data:
        result = self._fields(data, _EXPERIMENT, "")
        if self._volumes.volumes and isinstance(result.get("volumes", {}), dict):
            result["volumes"] = self._volumes.volumes
        return result

    def _fields(self, data: Data, expanders: dict[str, _Expander], path: str) -> Data:
        return {
            key: expander(self, value, join(path, key)) if (expander := expanders.get(key)) else value
            for key, value in data.items()
        }

    # --- small shapes ------------------------------------------------------------------------------------------------

    def env(self, value: object, path: str) -> object:
        if isinstance(value, dict):
            for key, item in value.items():
                if item is None:
                    what = f'the variable "{key}" has no value'
                    self.problems.append(
                        Problem(what=what, path=join(path, str(key)), next='write "" for an empty one')
                    )
            return {key: "" if item is None else scalar_text(item) for key, item in value.items()}
        return value

    def services(self, value: object, path: str) -> object:
        """Return ``replay``, ``[replay, {tensorboard: 6006}]`` or ``{tensorboard: 6006}`` as name -> port."""
        if isinstance(value, str):
            return {value: None}
        if not isinstance(value, (list, tuple)):
            return value
        ports: Data = {}
        for index, item in enumerate(value):
            if isinstance(item, dict) and not item.keys().isdisjoint(("port", "containerPort")):
                name, port = item.get("name", "NAME"), item.get("port", item.get("containerPort"))
                step = f"write `- {name}: {port}`"
                self.problems.append(
                    Problem(what="a service is a name or `{name: port}`", path=join(path, index), next=step)
                )
                continue
            for name, port in (
                {item: None} if isinstance(item, str) else item if isinstance(item, dict) else {}
            ).items():
                if name in ports and ports[name] != port:
                    what = f'the service "{name}" has two entries'
                    self.problems.append(Problem(what=what, path=join(path, index), next="keep one of them"))
                ports[name] = port
            if not isinstance(item, (str, dict)):
                what = "a service is a name or `{name: port}`"
                self.problems.append(Problem(what=what, path=join(path, index), next="write `- replay`"))
        return ports

    def names(self, value: object, path: str) -> object:
        """Return `connects` as names. Accepts a map of names without values; ports are a fault."""
        if isinstance(value, dict):
            for name, port in value.items():
                if port is not None:
                    what = f'"{name}" cannot be connected to on a port of one\'s own choice'
                    next_step = "fix the port where the service is bound: `binds: {name: port}`"
                    self.problems.append(Problem(what=what, path=join(path, str(name)), next=next_step))
            return list(value)
        return words(value)

    def secrets(self, value: object, path: str) -> object:
        items = [value] if isinstance(value, (str, dict)) else value
        if not isinstance(items, (list, tuple)):
            return value
        return [
            {"file": item}
            if isinstance(item, str)
            else self._fields(item, {"only": _form(words), "also_at": _form(words)}, join(path, index))
            if isinstance(item, dict)
            else item
            for index, item in enumerate(items)
        ]

    # --- processes ---------------------------------------------------------------------------------------------------

    def process_map(self, value: object, path: str) -> object:
        return self._each(value, path, self.process)

    def group_map(self, value: object, path: str) -> object:
        return self._each(value, path, lambda item, here: self._fields(item, _GROUP, here))

    def step_map(self, value: object, path: str) -> object:
        return self._each(value, path, lambda item, here: self._fields(item, _STEP, here))

    def _each(self, value: object, path: str, change: Callable[[Data, str], object]) -> object:
        if not isinstance(value, dict):
            return value
        return {
            key: change(item, join(path, str(key))) if isinstance(item, dict) else item for key, item in value.items()
        }

    def process(self, data: Data, path: str) -> Data:
        result = self._fields(data, _PROCESS, path)
        for field in ("requests", "limits"):
            resources = result.get(field)
            if isinstance(resources, dict) and not {"mem", "gpu", GPU_RESOURCE}.isdisjoint(resources):
                self._resources(result, dict(resources), field, path)
        return result

    def _resources(self, process: Data, resources: Data, field: str, path: str) -> None:
        """Set requests or limits: `mem` means memory, and GPUs go to `gpus`, for requests and limits alike."""
        if "mem" in resources:
            memory = resources.pop("mem")
            if resources.setdefault("memory", memory) != memory:
                what = "`mem` and `memory` say two things"
                self.problems.append(Problem(what=what, path=join(path, field), next="keep one of them"))
        for key in ("gpu", GPU_RESOURCE):
            if key not in resources:
                continue
            count = resources.pop(key)
            number = int(count) if isinstance(count, str) and count.isdecimal() and len(count) < 6 else count
            if process.setdefault("gpus", number) != number:
                what = f"`gpus: {process['gpus']}` and `{key}: {count}` say two things"
                next_step = "count the GPUs in `gpus` alone"
                self.problems.append(Problem(what=what, path=join(join(path, field), key), next=next_step))
        process[field] = resources

    def mounts(self, value: object, path: str) -> object:
        items = [value] if isinstance(value, (str, dict)) else value
        if not isinstance(items, (list, tuple)):
            return value
        result: list[object] = []
        for index, item in enumerate(items):
            here = join(path, index)
            many = parse_mounts(item, here, self.problems.append) if isinstance(item, str) else [item]
            result += [self._mount(mount, here) if isinstance(mount, dict) else mount for mount in many]
        return result

    def _mount(self, mount: Data, path: str) -> Data:
        inline = inline_volume(mount, path, self.problems.append)
        kinds = volume_kinds()
        result = {key: value for key, value in mount.items() if key not in kinds and key != "name"}
        if inline is None:
            if any(kind in mount for kind in kinds):
                result.setdefault("volume", "")
            return result if "name" not in mount else {**result, "name": mount["name"]}
        volume, suggestion = inline
        if "shm" in mount:
            result.setdefault("at", _SHARED_MEMORY)
        name = mount.get("name", suggestion)
        result["volume"] = self._declare(volume, name, path, is_named="name" in mount)
        return result

    def _declare(self, volume: Data, name: object, path: str, is_named: bool) -> str:
        if not isinstance(name, str):
            self.problems.append(Problem(what="the name of a volume is text", path=join(path, "name"), next="quote it"))
            return ""
        if not is_named:
            return self._volumes.declare(volume, name)
        if self._volumes.volumes.setdefault(name, volume) != volume:
            what = f'the volume "{name}" has two contents'
            self.problems.append(Problem(what=what, path=path, next="give one of them another name"))
        return name

    def _volume(self, value: object) -> object:
        """Return a declared volume; expands the inline form ``data: {nfs: {server: s, path: /p}}``."""
        if isinstance(value, dict) and "type" not in value and len(value) == 1:
            inline = inline_volume(value, "volumes", self.problems.append)
            return inline[0] if inline else value
        return value

    def local(self, value: object, path: str) -> object:
        return self._fields(value, _LOCAL, path) if isinstance(value, dict) else value


def _form(change: Callable[[object], object]) -> _Expander:
    """Return an expander from a function that needs only the value."""
    return lambda _self, value, _path: change(value)


_LOCAL: dict[str, _Expander] = {
    "command": _form(words),
    "args": _form(words),
    "cmds": _form(words),
    "preamble": _form(words),
    "shell": _form(shell),
    "pass_env": _form(words),
    "env": _Expansion.env,
}
_POD: dict[str, _Expander] = {
    "restart": _form(restart),
    "node_selector": _form(texts),
    "capabilities": _form(texts),
    "tolerations": _form(tolerations),
    "labels": _form(texts),
    "annotations": _form(texts),
    "pod_overlay": _form(plain),
    "names": _form(words),
}
_PROCESS: dict[str, _Expander] = {
    **_POD,
    "command": _form(words),
    "args": _form(words),
    "cmds": _form(words),
    "preamble": _form(words),
    "shell": _form(shell),
    "env": _Expansion.env,
    "binds": _Expansion.services,
    "exposes": _Expansion.services,
    "connects": _Expansion.names,
    "requests": _form(texts),
    "limits": _form(texts),
    "mounts": _Expansion.mounts,
    "ready": _form(probe),
    "after": _form(words),
    "assign_to": _form(assignment),
    "local": _Expansion.local,
    "container_overlay": _form(plain),
}
_GROUP: dict[str, _Expander] = {**_POD, "processes": _Expansion.process_map}
_STEP: dict[str, _Expander] = {
    key: _PROCESS[key]
    for key in ("command", "args", "cmds", "shell", "env", "mounts", "requests", "limits", "container_overlay")
} | {"groups": _form(words)}
_EXPERIMENT: dict[str, _Expander] = {
    "processes": _Expansion.process_map,
    "groups": _Expansion.group_map,
    "prepare": _Expansion.step_map,
    "order": _form(words),
    "configs": _form(lambda value: by_field(value, "text")),
    "secrets": _Expansion.secrets,
    "port_range": _form(port_range),
    "done_when": _form(words),
    "expose": _form(exposures),
    "image_pull_secrets": _form(words),
    "networks": _form(words),
    "labels": _form(texts),
    "annotations": _form(texts),
    "workload": _form(workload),
    "local": _Expansion.local,
}
