"""Edits of an emitted object that mean a field of the experiment, as that field.

What is a field works on every backend and can be changed by later verbs; an overlay reaches the cluster alone.
Names on the left are those of the Kubernetes API (core/v1 PodSpec, Container, Volume).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

__all__ = ["container_fields", "mount_fields", "pod_fields", "volume_fields"]

Data: TypeAlias = "dict[str, object]"

_CONTAINER = {
    "image": "image",
    "imagePullPolicy": "image_pull_policy",
    "command": "command",
    "args": "args",
    "workingDir": "cwd",
}
_POD = {
    "restartPolicy": "restart",
    "serviceAccountName": "service_account",
    "priorityClassName": "priority_class",
    "terminationGracePeriodSeconds": "grace_period",
    "nodeSelector": "node_selector",
    "tolerations": "tolerations",
}


def container_fields(overlay: Mapping[str, object]) -> tuple[Data, Data]:
    """The fields of a process that a container's `overlay` means, and what is left of it.

    Maps among the fields (`env`, `requests`, `limits`) are additions to those of the process.
    """
    fields: Data = {}
    rest = dict(overlay)
    for key, field in _CONTAINER.items():
        if key in rest:
            fields[field] = rest.pop(key)
    resources = rest.get("resources")
    if isinstance(resources, Mapping) and {"requests", "limits"}.issuperset(resources):
        fields.update(rest.pop("resources"))  # type: ignore[call-overload] # a map, as was just seen
    variables = [_variable(item) for item in _maps(rest.get("env"))]
    if variables and all(variables):
        fields["env"] = {name: value for variable in variables if variable for name, value in variable.items()}
        del rest["env"]
    return fields, rest


def pod_fields(overlay: Mapping[str, object]) -> tuple[Data, Data]:
    """The pod-level fields that a pod's `overlay` means, and what is left of it."""
    fields: Data = {}
    metadata, spec = _map(overlay.get("metadata")), _map(overlay.get("spec"))
    for key in ("labels", "annotations"):
        if isinstance(metadata.get(key), Mapping):
            fields[key] = metadata.pop(key)
    for key, field in _POD.items():
        if key in spec:
            fields[field] = spec.pop(key)
    rest = {key: value for key, value in overlay.items() if key not in ("metadata", "spec")}
    return fields, rest | {key: value for key, value in (("metadata", metadata), ("spec", spec)) if value}


def volume_fields(spec: Mapping[str, object]) -> tuple[dict[str, Data], Data]:
    """The volumes, by name, that the `spec` of a pod's overlay declares, and what is left of it."""
    known: dict[str, Data] = {}
    foreign: list[object] = []
    for item in _maps(spec.get("volumes")):
        volume = _volume(item)
        if volume is None or not isinstance(item.get("name"), str):
            foreign.append(item)
        else:
            known[str(item["name"])] = volume
    rest = {key: value for key, value in spec.items() if key != "volumes"}
    return known, {**rest, "volumes": foreign} if foreign else rest


def mount_fields(overlay: Mapping[str, object], volumes: Mapping[str, object]) -> tuple[list[Data], Data]:
    """The mounts of `volumes` that a container's `overlay` adds, and what is left of it."""
    known: list[Data] = []
    foreign: list[object] = []
    for item in _maps(overlay.get("volumeMounts")):
        plain = {"name", "mountPath", "readOnly", "subPath"}.issuperset(item)
        if plain and item.get("name") in volumes:
            names = {"name": "volume", "mountPath": "at", "readOnly": "read_only", "subPath": "sub_path"}
            known.append({names[key]: value for key, value in item.items()})
        else:
            foreign.append(item)
    rest = {key: value for key, value in overlay.items() if key != "volumeMounts"}
    return known, {**rest, "volumeMounts": foreign} if foreign else rest


def _variable(item: Data) -> Data | None:
    """An entry of `env` as name -> value; None if it says something that no field can."""
    name, source = item.get("name"), _map(item.get("valueFrom"))
    if not isinstance(name, str):
        return None
    if "valueFrom" not in item:
        return {name: item.get("value", "")}
    if len(source) != 1:
        return None
    kind, ref = next(iter(source.items()))
    ref = _map(ref)
    if kind in ("secretKeyRef", "configMapKeyRef"):
        field = "secret" if kind == "secretKeyRef" else "config"
        optional = {"optional": ref["optional"]} if "optional" in ref else {}
        return {name: {field: ref.get("name"), "key": ref.get("key"), **optional}}
    if kind == "fieldRef":
        return {name: {"field": ref.get("fieldPath")}}
    if kind == "resourceFieldRef" and set(ref) <= {"resource"}:
        return {name: {"resource": ref.get("resource")}}
    return None


def _volume(item: Data) -> Data | None:
    """A pod's volume as one of ours; None if it is of a kind that we have no record for."""
    sources = [key for key in item if key != "name"]
    if len(sources) != 1:
        return None
    kind, source = sources[0], _map(item[sources[0]])
    forms: dict[str, tuple[str, dict[str, str]]] = {
        "nfs": ("nfs", {"server": "server", "path": "path", "readOnly": "read_only"}),
        "hostPath": ("host_path", {"path": "path", "type": "kind"}),
        "persistentVolumeClaim": ("claim", {"claimName": "claim"}),
        "secret": ("secret", {"secretName": "secret"}),
        "configMap": ("config", {"name": "config"}),
    }
    if kind == "emptyDir" and {"medium", "sizeLimit"}.issuperset(source):
        size = {"size": source["sizeLimit"]} if "sizeLimit" in source else {}
        return {"type": "empty_dir", **({"memory": True} if source.get("medium") == "Memory" else {}), **size}
    if kind not in forms or not set(forms[kind][1]).issuperset(source):
        return None
    tag, names = forms[kind]
    return {"type": tag, **{names[key]: value for key, value in source.items()}}


def _map(value: object) -> Data:
    return dict(value) if isinstance(value, Mapping) else {}


def _maps(value: object) -> list[Data]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
