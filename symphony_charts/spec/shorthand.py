"""Expand the shorthand of spec files to the forms of the records.

Only values in a short form change; the later type check sees everything else as written. docs/spec.md lists the
forms.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from symphony_charts.errors import Problem
from symphony_charts.formats.data import sub
from symphony_charts.formats.names import DNS_LABEL, hint, join, sanitize, shorten
from symphony_charts.formats.yaml_read import plain, scalar_text
from symphony_charts.spec.json_schema import added_kind
from symphony_charts.spec.workload import ADDED_KINDS

Data: TypeAlias = "dict[str, object]"
_Expander: TypeAlias = "Callable[[_Expansion, object, str], object]"

GPU_RESOURCE = "nvidia.com/gpu"
_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - the container path of POSIX shared memory

_SPANS = ("initial_delay", "period", "timeout")
_UNITS = {"s": 1, "m": 60, "h": 3600}
_RESTARTS = {"Always": "always", "OnFailure": "on-failure", "Never": "never", "on_failure": "on-failure"}


def words(value: object) -> object:
    """Return a list of texts; a single text becomes a list of one."""
    if isinstance(value, str):
        return [value]
    return [scalar_text(item) for item in value] if isinstance(value, (list, tuple)) else value


def shell(value: object) -> object:
    """Return the name of a shell as it is; a list of the words before a script becomes a list of texts."""
    return value if isinstance(value, str) else words(value)


def texts(value: object) -> object:
    return {key: scalar_text(item) for key, item in value.items()} if isinstance(value, dict) else value


def restart(value: object) -> object:
    """Return a restart policy in our spelling; accepts Kubernetes' spelling."""
    return _RESTARTS.get(value, value) if isinstance(value, str) else value


def assignment(value: object) -> object:
    """Return ``{assign_to: machine}`` for ``machine``."""
    return {"assign_to": value} if isinstance(value, str) else plain(value)


def port_range(value: object) -> object:
    """Return ``[7000, 8999]`` for ``7000-8999``, Symphony's form."""
    if isinstance(value, str) and (match := re.fullmatch(r"\s*(\d{1,6})\s*-\s*(\d{1,6})\s*", value, re.ASCII)):
        return [int(match[1]), int(match[2])]
    return value


def by_field(value: object, field: str) -> object:
    """Return a map of records; a text becomes a record with that `field`."""
    if not isinstance(value, dict):
        return value
    return {key: {field: item} if isinstance(item, str) else item for key, item in value.items()}


def exposures(value: object) -> object:
    """Return the settings of exposed services; a text becomes the type, and annotations become text."""
    named = by_field(value, "type")
    return {key: _annotated(item) for key, item in named.items()} if isinstance(named, dict) else named


def _annotated(settings: object) -> object:
    """Return `settings` with the values of `annotations` as text."""
    if not isinstance(settings, dict) or "annotations" not in settings:
        return settings
    return {**settings, "annotations": texts(settings["annotations"])}


def tolerations(value: object) -> object:
    """Return a list of tolerations, from one or several; `tolerationSeconds` becomes `seconds`."""
    items = [value] if isinstance(value, dict) else value
    if not isinstance(items, (list, tuple)):
        return value
    return [_toleration(item) if isinstance(item, dict) else item for item in items]


def _toleration(item: Data) -> Data:
    return {"seconds" if key == "tolerationSeconds" else key: part for key, part in item.items()}


def probe(value: object) -> object:
    """Return a probe from its short forms.

    ``8080`` or a service name is a TCP port. `tcp`, `http` and `exec` have short forms, too, and times may have a
    unit, as in ``period: 1s``.
    """
    if value == "none":
        return value
    if isinstance(value, (str, int)) and not isinstance(value, bool):
        return {"tcp": {"port": value}}
    if not isinstance(value, dict):
        return value
    result = {key: _seconds(item) if key in _SPANS else item for key, item in value.items()}
    for kind in ("tcp", "http"):
        if isinstance(result.get(kind), (str, int)):
            result[kind] = {"port": result[kind]}
    asked = result.get("exec")
    if isinstance(asked, (str, list, tuple)):
        asked = {"command": asked}
    if isinstance(asked, dict) and "command" in asked:
        result["exec"] = {**asked, "command": words(asked["command"])}
    return result


def _seconds(value: object) -> object:
    """Return ``90s``, ``5m`` or ``1h`` in seconds, Kubernetes' unit."""
    match = re.fullmatch(r"(\d{1,6})([smh])", value, re.ASCII) if isinstance(value, str) else None
    return int(match[1]) * _UNITS[match[2]] if match else value


def workload(value: object) -> object:
    """Return `workload` with the short forms of kinds expanded."""
    if not isinstance(value, dict):
        return value
    if "appwrapper" in value:
        value = {**value, "appwrapper": _annotated(value["appwrapper"])}
    written = {name: value[name] for name in ADDED_KINDS if isinstance(value.get(name), dict)}
    return {**value, **{name: added_kind(name).expanded(settings) for name, settings in written.items()}}


# The inline key, and the field for a bare string under it.
_KINDS = {
    "nfs": None,
    "host_path": "path",
    "claim": "claim",
    "empty_dir": "size",
    "secret": "secret",
    "config": "config",
    "device": "path",
    "git": "repository",
}
VOLUME_KINDS = (*_KINDS, "shm")
_SHARED_NAME = "devshm"
_ALIASES = {"source": "src", "destination": "dst", "target": "dst", "ro": "readonly", "permissions": "perm"}
_KNOWN = ("type", "src", "dst", "readonly", "perm")

Report = Callable[[Problem], None]


def _own_folder(path: str) -> str:
    return f"a folder of yours: `{{claim: {{claim: data, local: {path}}}, at: /data}}`"


def parse_mounts(text: str, path: str, report: Report) -> list[Data]:
    """Return the mounts of ``type=bind|volume|device,src=,dst=[,readonly][,perm=]``, each with its volume inline.

    A further ``type=`` begins a new mount. Source: meta-pytorch/torchx, torchx/specs/api.py, parse_mounts.
    """
    source, colon, target = text.partition(":")
    if colon and "=" not in text:
        volume = f"{{host_path: {source}, at: {target}}}" if source.startswith("/") else ""
        step = f"write `{volume}`" if volume else _own_folder(source)
        report(Problem(f'"{text}" is a mount in the form of docker', path, step))
        return []
    mounts: list[dict[str, str]] = []
    for option in text.split(","):
        key, _, value = option.strip().partition("=")
        key = _ALIASES.get(key, key)
        if key not in _KNOWN:
            report(Problem(f'unknown mount option "{key}"', path, hint(key, _KNOWN, f"options: {', '.join(_KNOWN)}")))
        elif key == "type":
            mounts.append({"type": value})
        elif not mounts:
            report(Problem("a mount must begin with `type=`", path, "write type=bind,src=...,dst=..."))
            return []
        else:
            mounts[-1][key] = value
    return [mount for options in mounts if (mount := _mount(options, path, report)) is not None]


def _mount(options: dict[str, str], path: str, report: Report) -> Data | None:
    kind, src = options["type"], options.get("src", "")
    dst = options.get("dst") or (src if kind == "device" else "")
    if not src or not dst:
        report(Problem(f"the mount `type={kind}` needs src and dst", path, "add src=...,dst=..."))
        return None
    perm = {"perm": options["perm"]} if "perm" in options else {}
    device: Data = {"device": {"path": src, **perm}}
    volumes: dict[str, Data] = {"bind": {"host_path": src}, "volume": {"claim": src}, "device": device}
    if kind not in volumes:
        next_step = "write type=bind (host path), type=volume (claim) or type=device"
        report(Problem(f'unknown mount type "{kind}"', path, next_step))
        return None
    read_only = {"read_only": options["readonly"] not in ("false", "0")} if "readonly" in options else {}
    return {"at": dst, **read_only, **volumes[kind]}


def _name_of(volume: Data, kind: str) -> str:
    """Return Symphony's default name: NFS server, last part of a path, or name of a repository, claim or Secret."""
    if kind == "empty_dir":
        return _SHARED_NAME if volume.get("memory") else "scratch"
    source = volume.get("server" if kind == "nfs" else _KINDS[kind] or "path")
    return str(source or kind).rstrip("/").rpartition("/")[2].removesuffix(".git")


def _label(wanted: str) -> str:
    """Return a DNS label similar to `wanted`; invalid characters become dashes."""
    clean = "".join(letter if DNS_LABEL.fullmatch(letter) else "-" for letter in sanitize(wanted)).strip("-")
    return "-".join(part for part in clean.split("-") if part) or "volume"


# --- the experiment as a whole ----------------------------------------------------------------------------------------


def expand(data: Data) -> tuple[Data, list[Problem]]:
    """Return `data` with all shorthand expanded, and the faults found on the way. `data` stays unchanged."""
    expansion = _Expansion(data)
    return expansion.experiment(data), expansion.problems


class _Expansion:
    def __init__(self, data: Data) -> None:
        self.problems: list[Problem] = []
        self._volumes = {key: self._volume(value) for key, value in sub(data, "volumes").items()}

    def experiment(self, data: Data) -> Data:
        result = self._fields(data, _EXPERIMENT, "")
        if self._volumes and isinstance(result.get("volumes", {}), dict):
            result["volumes"] = self._volumes
        return result

    def _fields(self, data: Data, expanders: Mapping[str, _Expander], path: str) -> Data:
        return {
            key: expander(self, value, join(path, key)) if (expander := expanders.get(key)) else value
            for key, value in data.items()
        }

    def _fault(self, what: str, path: str, next_step: str) -> None:
        self.problems.append(Problem(what, path, next_step))

    # --- small shapes ------------------------------------------------------------------------------------------------

    def env(self, value: object, path: str) -> object:
        if isinstance(value, dict):
            for key, item in value.items():
                if item is None:
                    self._fault(f'the variable "{key}" has no value', join(path, str(key)), 'write "" for an empty one')
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
            here, named = join(path, index), {item: None} if isinstance(item, str) else item
            if not isinstance(named, dict) or not named.keys().isdisjoint(("port", "containerPort")):
                entry = named if isinstance(named, dict) else {}
                port = entry.get("port", entry.get("containerPort", "PORT"))
                step = f"write `- {entry.get('name', 'NAME')}: {port}`"
                self._fault("a service is a name or `{name: port}`", here, step)
                continue
            for name, port in named.items():
                if ports.setdefault(name, port) != port:
                    self._fault(f'the service "{name}" has two entries', here, "keep one of them")
        return ports

    def names(self, value: object, path: str) -> object:
        """Return `connects` as names. Accepts a map of names without values; ports are a fault."""
        if isinstance(value, dict):
            for name, port in value.items():
                if port is not None:
                    what = f'a connection to "{name}" cannot set another port'
                    next_step = "set the port in the process that binds it: `binds: {name: port}`"
                    self._fault(what, join(path, str(name)), next_step)
            return list(value)
        return words(value)

    def secrets(self, value: object, path: str) -> object:
        items = [value] if isinstance(value, (str, dict)) else value
        if not isinstance(items, (list, tuple)):
            return value
        named: list[object] = [{"file": item} if isinstance(item, str) else item for item in items]
        lists = {"only": _form(words), "also_at": _form(words)}
        return [self._fields(item, lists, path) if isinstance(item, dict) else item for item in named]

    # --- processes ---------------------------------------------------------------------------------------------------

    def process(self, value: object, path: str) -> object:
        if not isinstance(value, dict):
            return value
        result = self._fields(value, _PROCESS, path)
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
                self._fault("`mem` and `memory` differ", join(path, field), "keep one of them")
        for key in ("gpu", GPU_RESOURCE):
            if key not in resources:
                continue
            count = resources.pop(key)
            number = int(count) if isinstance(count, str) and count.isdecimal() and len(count) < 6 else count
            if process.setdefault("gpus", number) != number:
                what = f"`gpus: {process['gpus']}` and `{key}: {count}` differ"
                self._fault(what, join(join(path, field), key), "keep only `gpus`")
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
        inline = self._inline_volume(mount, path)
        result = {key: value for key, value in mount.items() if key not in VOLUME_KINDS and key != "name"}
        if inline is None:
            if not mount.keys().isdisjoint(VOLUME_KINDS):
                result.setdefault("volume", "")
            return result if "name" not in mount else {**result, "name": mount["name"]}
        volume, suggestion = inline
        if "shm" in mount:
            result.setdefault("at", _SHARED_MEMORY)
        result["volume"] = (
            self._named(volume, mount["name"], path) if "name" in mount else self._add(volume, suggestion)
        )
        return result

    def _inline_volume(self, mount: Data, path: str) -> tuple[Data, str] | None:
        """Return the inline volume of `mount` (one key of `VOLUME_KINDS`) and a name for it; None if there is none."""
        kinds = [kind for kind in VOLUME_KINDS if kind in mount]
        if not kinds:
            return None
        if len(kinds) > 1 or "volume" in mount:
            others = [*kinds, *(["volume"] if "volume" in mount else [])]
            what = f"a mount has one volume, not {len(others)} ({', '.join(others)})"
            self._fault(what, path, "write a mount per volume")
        kind = kinds[0]
        value, field, here = mount[kind], _KINDS.get(kind), join(path, kind)
        if kind == "shm":
            size = {"size": value} if isinstance(value, str) else {}
            return {"type": "empty_dir", "memory": True, **size}, _SHARED_NAME
        if isinstance(value, dict):
            volume = {"type": kind, **value}
        elif isinstance(value, str) and field:
            volume = {"type": kind, field: value}
            if kind == "host_path" and not value.startswith("/"):
                step = f"{_own_folder(value)}, or the whole path, from /"
                self._fault(f'"{value}" is not an absolute path', here, step)
                volume[field] = "/relative"
        elif kind == "empty_dir" and value in (None, True):
            volume = {"type": kind}
        else:
            forms = "a map" if field is None else f"a map or its {field}"
            self._fault(f"`{kind}` needs {forms}", here, f"write `{kind}:` with {forms}")
            return None
        return volume, _name_of(volume, kind)

    def _named(self, volume: Data, name: object, path: str) -> str:
        if not isinstance(name, str):
            self._fault("the name of a volume must be text", join(path, "name"), "quote it")
            return ""
        if self._volumes.setdefault(name, volume) != volume:
            self._fault(f'the volume "{name}" has two different contents', path, "give one of them another name")
        return name

    def _add(self, volume: Data, wanted: str) -> str:
        """Return the name of `volume`: one like `wanted`, unless another volume has it."""
        name = shorten(_label(wanted), 50)
        if self._volumes.setdefault(name, volume) != volume:
            content = json.dumps(volume, sort_keys=True, default=str)
            name = f"{name}-{hashlib.sha256(content.encode()).hexdigest()[:8]}"
            self._volumes.setdefault(name, volume)
        return name

    def _volume(self, value: object) -> object:
        """Return a declared volume; expands the inline form ``data: {nfs: {server: s, path: /p}}``."""
        if isinstance(value, dict) and "type" not in value and len(value) == 1:
            inline = self._inline_volume(value, "volumes")
            return inline[0] if inline else value
        return value


def _form(change: Callable[[object], object]) -> _Expander:
    """Return an expander from a function that needs only the value."""
    return lambda _self, value, _path: change(value)


def _record(fields: Mapping[str, _Expander]) -> _Expander:
    """Return an expander of a record with these `fields`."""
    return lambda expansion, value, path: expansion._fields(value, fields, path) if isinstance(value, dict) else value


def _map_of(record: _Expander) -> _Expander:
    """Return an expander of a map of records."""
    return lambda expansion, value, path: (
        {key: record(expansion, item, join(path, str(key))) for key, item in value.items()}
        if isinstance(value, dict)
        else value
    )


_RUN: dict[str, _Expander] = {
    **dict.fromkeys(("command", "args", "cmds", "preamble"), _form(words)),
    "shell": _form(shell),
    "env": _Expansion.env,
}
_LOCAL: dict[str, _Expander] = {**_RUN, "pass_env": _form(words)}
_POD: dict[str, _Expander] = {
    **dict.fromkeys(("node_selector", "capabilities", "labels", "annotations"), _form(texts)),
    "restart": _form(restart),
    **dict.fromkeys(("deadline", "grace_period"), _form(_seconds)),
    "tolerations": _form(tolerations),
    "pod_overlay": _form(plain),
    "names": _form(words),
}
_PROCESS: dict[str, _Expander] = {
    **_POD,
    **_RUN,
    "binds": _Expansion.services,
    "exposes": _Expansion.services,
    "connects": _Expansion.names,
    "requests": _form(texts),
    "limits": _form(texts),
    "mounts": _Expansion.mounts,
    "ready": _form(probe),
    "after": _form(words),
    "assign_to": _form(assignment),
    "local": _record(_LOCAL),
    "container_overlay": _form(plain),
}
_GROUP: dict[str, _Expander] = {**_POD, "processes": _map_of(_Expansion.process)}
_STEP: dict[str, _Expander] = {
    key: _PROCESS[key]
    for key in ("command", "args", "cmds", "shell", "env", "mounts", "requests", "limits", "container_overlay")
} | {"groups": _form(words)}
_EXPERIMENT: dict[str, _Expander] = {
    "env": _Expansion.env,
    **dict.fromkeys(("env_file", "order", "done_when", "image_pull_secrets", "networks"), _form(words)),
    "processes": _map_of(_Expansion.process),
    "groups": _map_of(_record(_GROUP)),
    "prepare": _map_of(_record(_STEP)),
    "linger": _form(_seconds),
    "configs": _form(lambda value: by_field(value, "text")),
    "secrets": _Expansion.secrets,
    "port_range": _form(port_range),
    "expose": _form(exposures),
    "labels": _form(texts),
    "annotations": _form(texts),
    "workload": _form(workload),
    "local": _record(_LOCAL),
}
