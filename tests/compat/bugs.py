"""Helpers for the tests of Symphony's faults: an experiment by its API, and the pods that would be sent."""

from __future__ import annotations

from typing import Any

import yaml

from symphony_charts.integrations.symphony.kube import KubeExperimentSpec
from symphony_charts.kinds.base import is_conductor

Object = dict[str, Any]


def two(**fields: Any) -> tuple[Any, Any, Any]:
    """Return an experiment of two lone processes."""
    exp = KubeExperimentSpec("rl", **fields)
    first, second = (exp.new_process(name, container_image="u:1", args=["run"]) for name in ("learner", "agent"))
    return exp, first, second


def compiled(exp: Any, kind: str) -> list[Object]:
    """Return the objects of a kind, without tests of the chart and the conductor."""
    found = (item for item in yaml.safe_load_all(exp.compile()) if not is_conductor(item))
    return [item for item in found if item["kind"] == kind and "helm.sh/hook" not in str(item["metadata"])]


def pod(exp: Any, group: str) -> Object:
    """Return the pod of a group or lone process."""
    for item in [*compiled(exp, "Job"), *compiled(exp, "StatefulSet")]:
        if item["metadata"]["labels"]["symph.dev/group"] == group:
            template: Object = item["spec"]["template"]["spec"]
            return template
    raise AssertionError(f"no pod {group}")


def container(exp: Any, group: str, name: str = "") -> Object:
    """Return a container of such a pod: the one of its own name, or `name`."""
    found = pod(exp, group)
    every = [*found.get("initContainers", []), *found["containers"]]
    return next(one for one in every if one["name"] == (name or group))
