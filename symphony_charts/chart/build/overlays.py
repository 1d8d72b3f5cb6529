"""Merge overlays of a spec into the trees of a pod."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from symphony_charts.chart.tree import Block, Tree
from symphony_charts.formats.data import maps, sub
from symphony_charts.formats.overlay import merge_overlay

POD_VALUES = ("affinity", "tolerations", "topologySpreadConstraints")

_IN_CONTAINER_VALUES = ("args", "command", "env", "image", "resources")


def laid_on(base: Mapping[str, Tree], over: Mapping[str, object], defaults: Mapping[str, object]) -> dict[str, Tree]:
    """Return `base` with `over` merged in. What a Block of it prints becomes constant: its entry in `defaults`."""
    constants = {key: defaults.get(key, {}) for key, item in base.items() if key in over and isinstance(item, Block)}
    return merge_overlay({**base, **constants}, over)


def rest_of_container(over: Mapping[str, object]) -> dict[str, Any]:
    """Return what the values have no place for of an overlay of a container."""
    return {key: copy.deepcopy(item) for key, item in over.items() if key not in _IN_CONTAINER_VALUES}


def env_of(over: Mapping[str, object]) -> dict[str, object]:
    """Return the variables of an overlay of a container, as values."""
    return {
        str(item.get("name")): item["valueFrom"] if "valueFrom" in item else str(item.get("value", ""))
        for item in maps(over, "env")
    }


def rest_of_pod(over: Mapping[str, object]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what the values have no place for of the metadata and the spec of an overlay of a pod."""
    spec = {key: item for key, item in sub(over, "spec").items() if key not in POD_VALUES}
    return copy.deepcopy(sub(over, "metadata")), copy.deepcopy(spec)


def for_container(spec: dict[str, Any], name: str) -> dict[str, Any]:
    """Return what the overlay of a pod says of the container `name`, and take it out of `spec`."""
    for key in ("containers", "initContainers"):
        items = maps(spec, key)
        mine = next((item for item in items if item.get("name") == name), None)
        if mine is not None:
            spec[key] = [item for item in items if item is not mine]
            return {field: item for field, item in mine.items() if field != "name"}
    return {}
