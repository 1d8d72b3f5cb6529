"""Convert Kubernetes fields in overlays to fields of the experiment.

A field works on every backend, and later verbs can change it; an overlay works only on the cluster. A value that does
not fit the field stays in the overlay. Names are those of the Kubernetes API (core/v1 PodSpec, Container, Volume,
Probe).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias

import msgspec

from symphony_charts.formats.data import merge_overlay, sub
from symphony_charts.formats.quantity import is_quantity
from symphony_charts.formats.yaml_read import scalar_text
from symphony_charts.spec.checks.names import may_be_set
from symphony_charts.spec.checks.pods import OUR_DOMAINS, is_in_domain
from symphony_charts.spec.shorthand import GPU_RESOURCE, restart, texts, words
from symphony_charts.spec.sources import AnyVolume, EnvSource, ExecProbe, Mount, Probe, Toleration
from symphony_charts.spec.variable_names import DEFAULT_SHELL
from symphony_charts.system.records import convert

Data: TypeAlias = "dict[str, object]"
# value -> (value of the field, rest for the overlay); None for nothing.
_Reader: TypeAlias = "Callable[[Any], tuple[object, object]]"
_Words: TypeAlias = "Mapping[tuple[str, ...], tuple[str, _Reader]]"

# Maps that an overlay extends instead of replacing.
ADDED = frozenset(("env", "requests", "limits", "labels", "annotations", "node_selector"))

_TOLERATION = {name: name for name in ("key", "operator", "value", "effect")} | {"tolerationSeconds": "seconds"}
_VOLUMES: dict[str, tuple[str, dict[str, str]]] = {
    "nfs": ("nfs", {"server": "server", "path": "path", "readOnly": "read_only"}),
    "hostPath": ("host_path", {"path": "path", "type": "kind"}),
    "persistentVolumeClaim": ("claim", {"claimName": "claim"}),
    "secret": ("secret", {"secretName": "secret"}),
    "configMap": ("config", {"name": "config"}),
    "emptyDir": ("empty_dir", {"medium": "memory", "sizeLimit": "size"}),
}
_MOUNT = {"name": "volume", "mountPath": "at", "readOnly": "read_only", "subPath": "sub_path"}
# Sources of variables; all keys except `optional` are required.
_SOURCES: dict[str, dict[str, str]] = {
    "secretKeyRef": {"name": "secret", "key": "key", "optional": "optional"},
    "configMapKeyRef": {"name": "config", "key": "key", "optional": "optional"},
    "fieldRef": {"fieldPath": "field"},
    "resourceFieldRef": {"resource": "resource"},
}
_HANDLERS = {
    "tcpSocket": ("tcp", {"port"}),
    "httpGet": ("http", {"port", "path", "scheme"}),
    "exec": ("exec", {"command"}),
}
# Keys of probe handlers, Kubernetes' and ours.
_ASKS = frozenset(("exec", "grpc", "http", "httpGet", "tcp", "tcpSocket"))
_PROBE_TIMES = {
    "initialDelaySeconds": "initial_delay",
    "periodSeconds": "period",
    "timeoutSeconds": "timeout",
    "failureThreshold": "failures",
    "successThreshold": "successes",
}


def container_fields(overlay: Mapping[str, object]) -> tuple[Data, Data]:
    """Return the fields of a process that a container's `overlay` sets, and the rest of the overlay.

    Map fields in `ADDED` are additions to those of the process. A command replaces shell lines; an empty one keeps the
    image's entry point.
    """
    fields, rest = _fields(overlay, CONTAINER_WORDS)
    if "command" in fields:
        fields |= {"command": fields["command"] or None, "cmds": None, "preamble": [], "shell": DEFAULT_SHELL}
    for field in ("requests", "limits"):
        gpus = sub(fields, field).pop(GPU_RESOURCE, None)
        # Requests and limits share one GPU count.
        fields |= {"gpus": int(str(gpus))} if gpus is not None else {}
        if fields.get(field) == {}:
            del fields[field]
    return fields, rest


def pod_fields(overlay: Mapping[str, object]) -> tuple[Data, Data]:
    """Return the pod-level fields that a pod's `overlay` sets, and the rest of the overlay."""
    return _fields(overlay, POD_WORDS)


def laid_over(record: object, fields: Mapping[str, object]) -> Data:
    """Return the values of `fields` over those of `record`, a Struct or its data."""

    def old(field: str) -> Any:
        return record.get(field, {}) if isinstance(record, dict) else getattr(record, field)

    return {
        name: {**old(name), **value} if name in ADDED and isinstance(value, dict) else value
        for name, value in fields.items()
    }


def volume_field(item: Mapping[str, object]) -> AnyVolume | None:
    """Return an entry of a pod's `volumes` as a volume of the experiment; None if no record fits."""
    sources = [key for key in item if key in _VOLUMES]
    if len(sources) != 1 or set(item) - {"name", *sources}:
        return None
    tag, names = _VOLUMES[sources[0]]
    volume = _renamed(item[sources[0]], names)
    if volume is None:
        return None
    volume = {key: value for key, value in volume.items() if value not in ("", False)}
    if tag == "empty_dir":
        volume = {key: scalar_text(value) for key, value in volume.items()}
        if volume.get("memory", "Memory") != "Memory" or not is_quantity(str(volume.get("size", "1"))):
            return None
        volume |= {"memory": True} if "memory" in volume else {}
    field: AnyVolume | None = _converted({"type": tag, **volume}, AnyVolume)
    return field


def mount_field(item: Mapping[str, object]) -> Data | None:
    """Return an entry of a container's `volumeMounts` as fields of a mount; None if a mount cannot hold it."""
    mount = _renamed(item, _MOUNT)
    if mount is None or not mount.get("at") or mount.get("sub_path") == "":
        return None
    return mount if _converted({"volume": "", **mount}, Mount) else None


def probe_data(ready: Probe) -> Data:
    """Return a readiness probe as data of Kubernetes."""
    probe: Data = {}
    if ready.tcp is not None:
        probe["tcpSocket"] = {"port": ready.tcp.port}
    elif ready.http is not None:
        http = ready.http
        probe["httpGet"] = {"port": http.port, "path": http.path, "scheme": http.scheme}
    elif ready.exec is not None:
        probe["exec"] = {"command": list(ready.exec.command)}
    probe |= {"periodSeconds": ready.period, "timeoutSeconds": ready.timeout, "failureThreshold": ready.failures}
    if ready.initial_delay:
        probe["initialDelaySeconds"] = ready.initial_delay
    if ready.successes != 1:
        probe["successThreshold"] = ready.successes
    return probe


def merge_probe(base: Mapping[str, object], over: Mapping[str, object]) -> Data:
    """Return `over` merged into a probe; another handler replaces the probe's handler."""
    asks = _ASKS.intersection(over)
    kept = {key: value for key, value in base.items() if key in asks or key not in _ASKS} if asks else base
    return merge_overlay(kept, over)


def probe_field(ready: object, probe: Mapping[str, object], services: Collection[str]) -> Probe | None:
    """Return a readiness `probe` merged over the field `ready`.

    None if there is no probe, if the field cannot hold it, or if it names a port that is not in `services`.
    """
    over: Data = {}
    for key, value in probe.items():
        if key in _PROBE_TIMES and _is_number(value):
            over[_PROBE_TIMES[key]] = value
        elif key in _HANDLERS and isinstance(value, dict) and set(value) <= _HANDLERS[key][1]:
            over[_HANDLERS[key][0]] = value
        else:
            return None
    base = msgspec.to_builtins(ready) if isinstance(ready, Probe) else {}
    merged: Probe | None = _converted(merge_probe(base, over), Probe) if over else None
    if merged is None:
        return None
    ways = [way for way in (merged.tcp, merged.http, merged.exec) if way is not None]
    if len(ways) != 1:
        return None
    if isinstance(ways[0], ExecProbe):
        return merged if ways[0].command else None
    is_known = _is_number(ways[0].port) or ways[0].port in services
    return merged if is_known and (merged.http is None or merged.http.path) else None


# --- values ----------------------------------------------------------------------------------------------------------


def _fields(overlay: Mapping[str, object], table: _Words) -> tuple[Data, Data]:
    fields: Data = {}
    rest = dict(overlay)
    for path, (field, read) in table.items():
        holder = sub(rest, *path[:-1])
        if path[-1] in holder:
            taken, left = read(holder[path[-1]])
            rest = put(rest, path, left)
            if taken is not None:
                fields[field] = taken
    return fields, rest


def put(data: Mapping[str, object], path: tuple[str, ...], value: object) -> Data:
    """Return `data` with another value at `path`; None removes the key and maps that become empty."""
    key, *inner = path
    new = put(sub(data, key), tuple(inner), value) or None if inner else value
    return {name: new if name == key else old for name, old in data.items() if name != key or new is not None}


def _renamed(item: object, names: Mapping[str, str]) -> Data | None:
    """Return a map with our key names; None if it has other keys or a null."""
    if not isinstance(item, dict) or not set(item) <= set(names) or None in item.values():
        return None
    return {names[key]: value for key, value in item.items()}


def _converted(data: object, kind: Any) -> Any:
    try:
        record = convert(data, kind)
    except msgspec.ValidationError:
        return None
    values = msgspec.structs.astuple(record)
    return record if all(_is_number(value) for value in values if type(value) is int) else None


def _if(is_held: Callable[[Any], bool], change: Callable[[Any], object] = lambda value: value) -> _Reader:
    """Return a reader for values that a field holds either completely or not."""
    return lambda value: (new, None) if is_held(new := change(value)) else (None, value)


def _texts(without: Collection[str] = ()) -> _Reader:
    """Return a reader for a map of texts. Keys of the domains in `without`, which the field refuses, stay behind."""

    def read(value: Any) -> tuple[object, object]:
        if not isinstance(value, dict):
            return None, value
        taken = {
            name: text
            for name, item in value.items()
            if isinstance(name, str) and isinstance(text := scalar_text(item), str) and not is_in_domain(name, without)
        }
        return taken or None, {name: item for name, item in value.items() if name not in taken} or None

    return read


def _are_amounts(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    is_countable = GPU_RESOURCE not in value or str(value[GPU_RESOURCE]).isdecimal()
    return is_countable and all(isinstance(name, str) and is_quantity(str(amount)) for name, amount in value.items())


def _variables(value: Any) -> tuple[object, object]:
    if not isinstance(value, list):
        return None, value
    variables: Data = {}
    foreign: list[object] = []
    for entry in value:
        variable = _variable(entry) if isinstance(entry, dict) else None
        if variable is None:
            foreign.append(entry)
        else:
            variables[str(entry["name"])] = variable
    return variables or None, foreign or None


def _variable(item: Data) -> str | EnvSource | None:
    """Return the value of an `env` entry; None if no field can hold it."""
    name = item.get("name")
    if not isinstance(name, str) or not may_be_set(name) or not {"name", "value", "valueFrom"}.issuperset(item):
        return None
    if "valueFrom" not in item:
        value = scalar_text(item.get("value", ""))
        return value if isinstance(value, str) else None
    source = sub(item, "valueFrom")
    if len(source) != 1 or item.get("value"):
        return None
    kind, reference = next(iter(source)), dict(sub(source, next(iter(source))))
    if kind == "fieldRef" and reference.pop("apiVersion", "v1") != "v1":
        return None
    names = _SOURCES.get(kind, {})
    field = _renamed(reference, names)
    if not field or not all(field.get(name) for name in names.values() if name != "optional"):
        return None
    converted: EnvSource | None = _converted(field, EnvSource)
    return converted


def _tolerations(value: Any) -> tuple[object, object]:
    items = [_renamed(item, _TOLERATION) for item in value] if isinstance(value, list) else [None]
    ours = [_converted({k: v for k, v in item.items() if v != ""}, Toleration) for item in items if item is not None]
    return (None, value) if None in items or None in ours else (ours, None)


def _is_number(value: object) -> bool:
    """Return True for an integer in Kubernetes' int32 range."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**31


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


CONTAINER_WORDS: _Words = {
    ("image",): ("image", _if(_is_text)),
    ("workingDir",): ("cwd", _if(_is_text)),
    ("imagePullPolicy",): ("image_pull_policy", _if(lambda value: value in ("Always", "IfNotPresent", "Never"))),
    ("command",): ("command", _if(_are_texts, words)),
    ("args",): ("args", _if(_are_texts, words)),
    ("resources", "requests"): ("requests", _if(_are_amounts, texts)),
    ("resources", "limits"): ("limits", _if(_are_amounts, texts)),
    ("env",): ("env", _variables),
}
"""Kubernetes fields of a container, and the process field for each."""

POD_WORDS: _Words = {
    ("metadata", "labels"): ("labels", _texts(without=OUR_DOMAINS)),
    ("metadata", "annotations"): ("annotations", _texts(without=OUR_DOMAINS[:1])),
    ("spec", "nodeSelector"): ("node_selector", _texts()),
    ("spec", "serviceAccountName"): ("service_account", _if(_is_text)),
    ("spec", "priorityClassName"): ("priority_class", _if(_is_text)),
    ("spec", "restartPolicy"): ("restart", _if(lambda value: value in ("always", "on-failure", "never"), restart)),
    ("spec", "terminationGracePeriodSeconds"): ("grace_period", _if(_is_number)),
    ("spec", "tolerations"): ("tolerations", _tolerations),
}
"""Kubernetes fields of a pod, and the pod field for each."""
