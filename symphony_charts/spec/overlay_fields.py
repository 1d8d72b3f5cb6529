"""The table of overlay fields turns Kubernetes' words in an overlay into the fields that the experiment has for them.

What is a field works on every backend and can be changed by later verbs; an overlay reaches the cluster alone. Every
reader gives the fields it found and the rest of the overlay; a value that the field cannot hold stays in the rest.
Names on the left are those of the Kubernetes API (core/v1 PodSpec, Container, Volume, Probe).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeAlias

from symphony_charts.formats.data import sub
from symphony_charts.formats.overlay import merge_overlay
from symphony_charts.formats.quantity import is_quantity
from symphony_charts.formats.scalars import scalar_text
from symphony_charts.spec.checks.env import may_be_set
from symphony_charts.spec.checks.pods import OUR_DOMAINS, is_in_domain
from symphony_charts.spec.shells import DEFAULT_SHELL
from symphony_charts.spec.shorthand_fields import restart, words

__all__ = [
    "ADDED",
    "Data",
    "container_fields",
    "merge_probe",
    "mount_field",
    "pod_fields",
    "probe_field",
    "volume_field",
]

Data: TypeAlias = "dict[str, object]"

# Maps: what an overlay says is added to what the process or pod says.
ADDED = frozenset(("env", "requests", "limits", "labels", "annotations", "node_selector"))
GPU_RESOURCE = "nvidia.com/gpu"

_POLICIES = ("Always", "IfNotPresent", "Never")
_RESTARTS = ("always", "on-failure", "never")
_TOLERATION = {
    "key": "key",
    "operator": "operator",
    "value": "value",
    "effect": "effect",
    "tolerationSeconds": "seconds",
}
_OPERATORS = (None, "Exists", "Equal")
_EFFECTS = (None, "NoSchedule", "PreferNoSchedule", "NoExecute")
_VOLUMES: dict[str, tuple[str, dict[str, str]]] = {
    "nfs": ("nfs", {"server": "server", "path": "path", "readOnly": "read_only"}),
    "hostPath": ("host_path", {"path": "path", "type": "kind"}),
    "persistentVolumeClaim": ("claim", {"claimName": "claim"}),
    "secret": ("secret", {"secretName": "secret"}),
    "configMap": ("config", {"name": "config"}),
    "emptyDir": ("empty_dir", {"medium": "memory", "sizeLimit": "size"}),
}
_NEEDED = {"nfs": {"server", "path"}, "hostPath": {"path"}, "persistentVolumeClaim": {"claimName"}}
_NEEDED |= {"secret": {"secretName"}, "configMap": {"name"}}
_MOUNT = {"name": "volume", "mountPath": "at", "readOnly": "read_only", "subPath": "sub_path"}
_HANDLERS = {
    "tcpSocket": ("tcp", {"port"}),
    "httpGet": ("http", {"port", "path", "scheme"}),
    "exec": ("exec", {"command"}),
}
# How a probe asks, in Kubernetes' words and in ours.
_ASKS = frozenset(("exec", "grpc", "http", "httpGet", "tcp", "tcpSocket"))
_PROBE_TIMES = {
    "initialDelaySeconds": "initial_delay",
    "periodSeconds": "period",
    "timeoutSeconds": "timeout",
    "failureThreshold": "failures",
    "successThreshold": "successes",
}


def container_fields(overlay: Mapping[str, object]) -> tuple[Data, Data]:
    """The fields of a process that a container's `overlay` means, and what is left of it.

    Maps among the fields (`ADDED`) are additions to those of the process. A command takes the place of shell lines; an
    empty one leaves the image's own.
    """
    fields: Data = {}
    rest = dict(overlay)
    for key, field in (("image", "image"), ("workingDir", "cwd")):
        if _is_text(rest.get(key)):
            fields[field] = rest.pop(key)
    if rest.get("imagePullPolicy") in _POLICIES:
        fields["image_pull_policy"] = rest.pop("imagePullPolicy")
    for key in ("command", "args"):
        if key in rest and _are_texts(value := words(rest[key])):
            fields[key] = value
            del rest[key]
    if "command" in fields:
        fields |= {"command": fields["command"] or None, "cmds": None, "preamble": [], "shell": DEFAULT_SHELL}
    _take_amounts(fields, rest)
    _take_variables(fields, rest)
    return fields, rest


def pod_fields(overlay: Mapping[str, object]) -> tuple[Data, Data]:
    """The pod-level fields that a pod's `overlay` means, and what is left of it."""
    fields: Data = {}
    metadata, spec = dict(sub(overlay, "metadata")), dict(sub(overlay, "spec"))
    _take_texts(fields, "labels", metadata, "labels", without=OUR_DOMAINS)
    _take_texts(fields, "annotations", metadata, "annotations", without=OUR_DOMAINS[:1])
    _take_texts(fields, "node_selector", spec, "nodeSelector")
    for key, field in (("serviceAccountName", "service_account"), ("priorityClassName", "priority_class")):
        if _is_text(spec.get(key)):
            fields[field] = spec.pop(key)
    if restart(spec.get("restartPolicy")) in _RESTARTS:
        fields["restart"] = restart(spec.pop("restartPolicy"))
    grace = spec.get("terminationGracePeriodSeconds")
    if _is_number(grace):
        fields["grace_period"] = spec.pop("terminationGracePeriodSeconds")
    tolerations = _tolerations(spec.get("tolerations"))
    if tolerations is not None:
        fields["tolerations"] = tolerations
        del spec["tolerations"]
    parts = {"metadata": metadata, "spec": spec}
    rest = {key: parts.get(key, value) if isinstance(value, dict) else value for key, value in overlay.items()}
    return fields, {key: value for key, value in rest.items() if value != {}}


def volume_field(item: Mapping[str, object]) -> Data | None:
    """An entry of a pod's `volumes` as a volume of the experiment; None if there is no record for it."""
    sources = [key for key in item if key != "name"]
    if len(sources) != 1 or sources[0] not in _VOLUMES or not isinstance(item[sources[0]], dict):
        return None
    kind, source = sources[0], sub(item, sources[0])
    tag, names = _VOLUMES[kind]
    if not set(names).issuperset(source) or not _NEEDED.get(kind, set()) <= set(source):
        return None
    volume = {names[key]: value for key, value in source.items() if value not in ("", False)}
    if kind == "emptyDir":
        volume = {key: scalar_text(value) for key, value in volume.items()}
        if volume.get("memory", "Memory") != "Memory" or not is_quantity(str(volume.get("size", "1"))):
            return None
        volume |= {"memory": True} if "memory" in volume else {}
    return {"type": tag, **volume} if all(isinstance(value, (str, bool)) for value in volume.values()) else None


def mount_field(item: Mapping[str, object]) -> Data | None:
    """An entry of a container's `volumeMounts` as fields of a mount; None if it says more than a mount can."""
    mount = {_MOUNT.get(key, ""): value for key, value in item.items()}
    fits = all(isinstance(value, bool if field == "read_only" else str) for field, value in mount.items())
    return mount if fits and "" not in mount and mount.get("at") and mount.get("sub_path") != "" else None


def merge_probe(base: Mapping[str, object], over: Mapping[str, object]) -> Data:
    """`over` laid on a probe; one that asks in another way asks in that way alone."""
    asks = _ASKS.intersection(over)
    kept = {key: value for key, value in base.items() if key in asks or key not in _ASKS} if asks else base
    return merge_overlay(kept, over)


def probe_field(base: Mapping[str, object], probe: Mapping[str, object], services: Collection[str]) -> Data | None:
    """A readiness `probe` laid over `base`, which is `ready` as data, as `ready`.

    None if there is none, if it says more than `ready` can, or names a port that is none of `services`.
    """
    over: Data = {}
    for key, value in probe.items():
        if key in _PROBE_TIMES and _is_number(value):
            over[_PROBE_TIMES[key]] = value
        elif key in _HANDLERS and isinstance(value, dict) and set(value) <= _HANDLERS[key][1]:
            over[_HANDLERS[key][0]] = value
        else:
            return None
    ready = merge_probe(base, over)
    handlers = [handler for handler, _ in _HANDLERS.values() if handler in ready]
    is_whole = bool(over) and len(handlers) == 1
    return ready if is_whole and _is_handler(handlers[0], sub(ready, handlers[0]), services) else None


def _is_handler(handler: str, asked: Mapping[str, object], services: Collection[str]) -> bool:
    if handler == "exec":
        return bool(asked.get("command")) and _are_texts(asked.get("command"))
    port = asked.get("port")
    is_port = port in services if isinstance(port, str) else _is_number(port)
    return is_port and _is_text(asked.get("path", "/")) and asked.get("scheme", "HTTP") in ("HTTP", "HTTPS")


def _take_amounts(fields: Data, rest: Data) -> None:
    """Moves requests and limits; GPUs are counted once, for both alike."""
    resources = sub(rest, "resources")
    left = dict(resources)
    for key in ("requests", "limits"):
        amounts = {name: scalar_text(amount) for name, amount in sub(resources, key).items()}
        if not all(isinstance(name, str) and is_quantity(str(amount)) for name, amount in amounts.items()):
            continue
        gpus = amounts.pop(GPU_RESOURCE, None)
        if gpus is not None and not str(gpus).isdecimal():
            continue
        if gpus is not None:
            fields["gpus"] = int(str(gpus))
        if amounts:
            fields[key] = amounts
        left.pop(key, None)
    if left:
        rest["resources"] = left
    elif resources:
        del rest["resources"]


def _take_variables(fields: Data, rest: Data) -> None:
    entries = rest.get("env")
    if not isinstance(entries, list):
        return
    variables: Data = {}
    foreign: list[object] = []
    for entry in entries:
        variable = _variable(entry) if isinstance(entry, dict) else None
        if variable is None:
            foreign.append(entry)
        else:
            variables |= variable
    if variables:
        fields["env"] = variables
    del rest["env"]
    if foreign:
        rest["env"] = foreign


def _variable(item: Data) -> Data | None:
    """An entry of `env` as name -> value; None if it says something that no field can."""
    name = item.get("name")
    if not isinstance(name, str) or not may_be_set(name) or not {"name", "value", "valueFrom"}.issuperset(item):
        return None
    if "valueFrom" not in item:
        value = scalar_text(item.get("value", ""))
        return {name: value} if isinstance(value, str) else None
    source = sub(item, "valueFrom")
    if len(source) != 1 or item.get("value"):
        return None
    kind, reference = next(iter(source)), sub(source, next(iter(source)))
    field = _source(kind, reference)
    return None if field is None else {name: field}


def _source(kind: str, reference: Data) -> Data | None:
    if kind in ("secretKeyRef", "configMapKeyRef") and set(reference) <= {"name", "key", "optional"}:
        optional = {"optional": reference["optional"]} if "optional" in reference else {}
        source = {"secret" if kind == "secretKeyRef" else "config": reference.get("name"), "key": reference.get("key")}
        is_known = all(map(_is_text, source.values())) and all(isinstance(value, bool) for value in optional.values())
        return {**source, **optional} if is_known else None
    if (
        kind == "fieldRef"
        and set(reference) <= {"fieldPath", "apiVersion"}
        and reference.get("apiVersion", "v1") == "v1"
    ):
        return {"field": reference["fieldPath"]} if _is_text(reference.get("fieldPath")) else None
    if kind == "resourceFieldRef" and set(reference) == {"resource"} and _is_text(reference["resource"]):
        return {"resource": reference["resource"]}
    return None


def _take_texts(fields: Data, field: str, source: Data, key: str, without: Collection[str] = ()) -> None:
    """Moves a map of texts; keys of the domains in `without` stay, since the field refuses them."""
    texts = {name: scalar_text(value) for name, value in sub(source, key).items()}
    fitting = {name: text for name, text in texts.items() if isinstance(name, str) and isinstance(text, str)}
    moved = {name: text for name, text in fitting.items() if not is_in_domain(name, without)}
    left = {name: value for name, value in sub(source, key).items() if name not in moved}
    if moved:
        fields[field] = moved
    if isinstance(source.get(key), dict):
        source[key] = left
        if not left:
            del source[key]


def _tolerations(value: object) -> list[Data] | None:
    """Tolerations as those of a pod; None if one of them says something that ours cannot."""
    if not isinstance(value, list):
        return None
    result: list[Data] = []
    for item in value:
        if not isinstance(item, dict) or not set(_TOLERATION).issuperset(item):
            return None
        ours = {_TOLERATION[key]: part for key, part in item.items() if part != ""}
        seconds = ours.get("seconds", 0)
        texts = [part for key, part in ours.items() if key != "seconds"]
        if not _are_texts(texts) or not _is_number(seconds):
            return None
        if ours.get("operator") not in _OPERATORS or ours.get("effect") not in _EFFECTS:
            return None
        result.append(ours)
    return result


def _is_number(value: object) -> bool:
    """Whether `value` is a whole number that Kubernetes' int32 holds."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**31


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)
