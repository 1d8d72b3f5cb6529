"""Overlays of pods and containers: what the values have a place for goes there, so that it can still be overridden.

The rest stays an `overlay` that the templates merge into the finished pod or container.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping

from symphony_charts.chart.values import Values, overlay
from symphony_charts.spec.nested import sub

__all__ = ["absorb_container", "absorb_pod"]

_CONTAINER_PLAIN = frozenset({"image", "imagePullPolicy", "command", "args", "workingDir", "securityContext"})
_POD_PLAIN = frozenset(
    {
        "affinity",
        "automountServiceAccountToken",
        "priorityClassName",
        "securityContext",
        "serviceAccountName",
        "schedulerName",
        "terminationGracePeriodSeconds",
        "tolerations",
        "topologySpreadConstraints",
    }
)


def absorb_container(values: Values, over: Mapping[str, object]) -> Values:
    """The values of a container with `over`, the shape of a Kubernetes container, in them."""
    result, rest = dict(values), copy.deepcopy(dict(over))
    for key in list(rest):
        if key in _CONTAINER_PLAIN and rest[key]:
            result[key] = rest.pop(key)
        elif key == "resources" and _is_plain_resources(rest[key]):
            result["resources"] = overlay(sub(values, "resources"), rest.pop(key))
        elif key == "env" and _is_env(rest[key]):
            result["env"] = {**sub(values, "env"), **_env_map(rest.pop(key))}
    return {**result, "overlay": rest} if rest else result


def absorb_pod(values: Values, over: Mapping[str, object]) -> Values:
    """The values of a group with `over`, a pod's ``metadata`` and ``spec``, in them.

    Containers that `over` names are those of the group; others are added to the pod as they are.
    """
    result, rest = dict(values), copy.deepcopy(dict(over))
    metadata, spec = sub(rest, "metadata"), sub(rest, "spec")
    for key in ("labels", "annotations"):
        if sub(metadata, key):
            result[key] = {**sub(values, key), **sub(metadata, key)}
            del metadata[key]
    for key in [key for key in spec if key in _POD_PLAIN and spec[key]]:
        result[key] = spec.pop(key)
    if sub(spec, "nodeSelector"):
        result["nodeSelector"] = {**sub(values, "nodeSelector"), **sub(spec, "nodeSelector")}
        del spec["nodeSelector"]
    _absorb_members(result, spec)
    kept = {key: value for key, value in {**rest, "metadata": metadata, "spec": spec}.items() if value}
    return {**result, "overlay": kept} if kept else result


def _absorb_members(group: Values, spec: Values) -> None:
    """Moves the overlays of the group's own containers out of `spec` into their values."""
    listed = spec.get("containers")
    if not isinstance(listed, list):
        return
    containers, foreign = dict(sub(group, "containers")), []
    for item in listed:
        name = item.get("name") if isinstance(item, dict) else None
        if isinstance(name, str) and name in containers:
            fields = {key: value for key, value in item.items() if key != "name"}
            containers[name] = absorb_container(sub(containers, name), fields)
        else:
            foreign.append(item)
    group["containers"] = containers
    spec.pop("containers")
    if foreign:
        spec["containers"] = foreign


def _is_plain_resources(value: object) -> bool:
    return isinstance(value, dict) and set(value) <= {"requests", "limits"}


def _is_env(value: object) -> bool:
    shapes = ({"name", "value"}, {"name", "valueFrom"})
    return isinstance(value, list) and all(
        isinstance(item, dict) and isinstance(item.get("name"), str) and set(item) in shapes for item in value
    )


def _env_map(value: object) -> Values:
    entries = value if isinstance(value, list) else []
    return {item["name"]: item.get("value", item.get("valueFrom")) for item in entries}
