"""Faults of a field that an overlay filled name the overlay's path, which is what the user wrote."""

from __future__ import annotations

import re
from collections.abc import Iterator

from symphony_charts.formats.data import maps, sub
from symphony_charts.spec.model import Experiment, PodSettings, Process

__all__ = ["written_at"]

_PATH = re.compile(
    r"(?:groups\.(?P<group>[^.]+))?\.?(?:processes\.(?P<process>[^.]+))?\.(?P<field>\w+)(?:\.(?P<key>.+)|\[.*)?"
)
_CONTAINER: dict[str, tuple[str, ...]] = {
    "args": ("args",),
    "cmds": ("args",),
    "command": ("command",),
    "cwd": ("workingDir",),
    "env": ("env",),
    "gpus": ("resources",),
    "image": ("image",),
    "limits": ("resources", "limits"),
    "mounts": ("volumeMounts",),
    "ready": ("readinessProbe",),
    "requests": ("resources", "requests"),
}
_POD: dict[str, tuple[str, ...]] = {
    "annotations": ("metadata", "annotations"),
    "grace_period": ("spec", "terminationGracePeriodSeconds"),
    "labels": ("metadata", "labels"),
    "node_selector": ("spec", "nodeSelector"),
    "priority_class": ("spec", "priorityClassName"),
    "restart": ("spec", "restartPolicy"),
    "service_account": ("spec", "serviceAccountName"),
    "tolerations": ("spec", "tolerations"),
}


def written_at(experiment: Experiment, path: str) -> str:
    """`path` of a finished experiment, or the overlay in `experiment`, as it was written, that says what stands there.

    An overlay has the last word: whoever speaks of the field in one has said it there.
    """
    match = _PATH.fullmatch(path)
    if match is None:
        return path
    group, name = experiment.groups.get(match["group"] or ""), match["process"] or ""
    process = (group.processes if group is not None else experiment.processes).get(name)
    pod = group if group is not None else process
    where = f"groups.{match['group']}" if group is not None else f"processes.{name}"
    own = path[: match.start("field") - 1]
    for overlay, at, words in _places(pod, process, where, own, name):
        path = _at(overlay, at, words.get(match["field"]), match["key"]) or path
    return path


def _places(
    pod: PodSettings | None, process: Process | None, where: str, own: str, name: str
) -> Iterator[tuple[dict[str, object], str, dict[str, tuple[str, ...]]]]:
    """The overlays that may speak of a process and its pod, the last word last."""
    if process is not None:
        yield process.container_overlay, f"{own}.container_overlay", _CONTAINER
    if pod is None:
        return
    yield pod.pod_overlay, f"{where}.pod_overlay", _POD
    for key in ("containers", "initContainers"):
        for index, item in enumerate(maps(sub(pod.pod_overlay, "spec"), key)):
            if process is not None and item.get("name") == name:
                yield item, f"{where}.pod_overlay.spec.{key}[{index}]", _CONTAINER


def _at(overlay: dict[str, object], at: str, words: tuple[str, ...] | None, key: str | None) -> str:
    """Where `overlay`, which stands at `at`, says `words`, of `key` if there are several; empty if it does not."""
    if words is None:
        return ""
    holder, last = sub(overlay, *words[:-1]), words[-1]
    place = ".".join((at, *words))
    if last == "env":
        entries = enumerate(maps(holder, last))
        return next((f"{place}[{index}]" for index, entry in entries if entry.get("name") == key), "")
    inside = holder.get(last)
    if key is not None and isinstance(inside, dict) and last != "readinessProbe":
        return f"{place}.{key}" if key in inside else ""
    return place if last in holder else ""
