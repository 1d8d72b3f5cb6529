"""Overlays of pods and containers: what the values have a place for goes there, so that it can still be overridden.

What has a field of the experiment is that field already. The rest stays an `overlay` that the templates merge into the
finished pod or container.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping

from symphony_charts.chart.render.values import Values
from symphony_charts.formats.data import maps, sub
from symphony_charts.formats.overlay import merge_overlay
from symphony_charts.spec.overlay_fields import merge_probe

__all__ = ["absorb_container", "absorb_pod"]

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_CONTAINER = (*_PROBES, "resources", "securityContext")
_POD = (
    "affinity",
    "automountServiceAccountToken",
    "schedulerName",
    "securityContext",
    "tolerations",
    "topologySpreadConstraints",
)


def absorb_container(values: Values, over: Mapping[str, object]) -> Values:
    """The values of a container with `over`, the shape of a Kubernetes container, in them."""
    result, rest = dict(values), copy.deepcopy(dict(over))
    for key in _CONTAINER:
        if sub(rest, key):
            merge = merge_probe if key in _PROBES else merge_overlay
            result[key] = merge(sub(values, key), sub(rest, key))
            del rest[key]
    if _is_env(rest.get("env")):
        result["env"] = sub(values, "env") | {str(item["name"]): _source(item) for item in maps(rest, "env")}
        del rest["env"]
    return {**result, "overlay": rest} if rest else result


def absorb_pod(values: Values, over: Mapping[str, object]) -> Values:
    """The values of a group with `over`, a pod's ``metadata`` and ``spec``, in them."""
    result, rest = dict(values), copy.deepcopy(dict(over))
    metadata, spec = sub(rest, "metadata"), sub(rest, "spec")
    for key in ("labels", "annotations"):
        if sub(metadata, key):
            result[key] = {**sub(values, key), **sub(metadata, key)}
            del metadata[key]
    for key in _POD:
        if spec.get(key):
            result[key] = spec.pop(key)
    kept = {key: value for key, value in {**rest, "metadata": metadata, "spec": spec}.items() if value}
    return {**result, "overlay": kept} if kept else result


def _is_env(value: object) -> bool:
    shapes = ({"name", "value"}, {"name", "valueFrom"})
    return isinstance(value, list) and all(
        isinstance(item, dict) and isinstance(item.get("name"), str) and set(item) in shapes for item in value
    )


def _source(item: Mapping[str, object]) -> object:
    return item.get("value", item.get("valueFrom"))
