"""The link between builders and the views of what they become: rendering, and recording of edits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from symphony_charts.spec.builder_parts import Data, merge
from symphony_charts.spec.overlay_fields import container_fields, mount_fields, pod_fields, volume_fields
from symphony_charts.spec.overlay_merge import merge_overlay

if TYPE_CHECKING:
    from symphony_charts.spec.builder import ExperimentSpec

__all__ = ["Viewed", "alone", "take_mounts"]

# What an experiment says of a pod beside the pod itself.
_POD_CONTEXT: tuple[str, ...] = ("name", "owner", "team", "image", "volumes", "security", "workload")
_ADDED = frozenset(("env", "requests", "limits", "labels", "annotations", "node_selector"))


class Viewed:
    """A builder whose pod or container can be looked at and edited."""

    name: str
    experiment: ExperimentSpec | None
    _data: Data

    def _pod_name(self) -> str:
        raise NotImplementedError

    def rendered(self, kind: str) -> Data:
        """The pod or container as it will be emitted; only the edits while too little is known to emit it."""
        pod = self.experiment.render_pod(self._pod_name()) if self.experiment is not None else None
        overlay = cast("Data", self._data.get(f"{kind}_overlay", {}))
        if pod is None:
            return dict(overlay) if kind == "container" else {"metadata": {}, "spec": {}, **overlay}
        if kind == "pod":
            return pod
        spec = cast("Mapping[str, object]", pod.get("spec", {}))
        containers = [
            *cast("list[Data]", spec.get("containers", [])),
            *cast("list[Data]", spec.get("initContainers", [])),
        ]
        return next((container for container in containers if container.get("name") == self.name), dict(overlay))

    def record(self, kind: str, overlay: Data) -> None:
        """Take an edit: as fields where they exist, the rest into the overlay."""
        if kind == "container":
            fields, rest = container_fields(overlay)
        else:
            fields, rest = pod_fields(overlay)
            volumes, spec = volume_fields(cast("Mapping[str, object]", rest.get("spec", {})))
            self._data_volumes().update(volumes)
            rest = {key: value for key, value in {**rest, "spec": spec}.items() if value}
        for field, value in fields.items():
            self._data[field] = merge(self._data.get(field, {}), value) if field in _ADDED else value
        if rest:
            field = f"{kind}_overlay"
            self._data[field] = merge_overlay(self._data.get(field, {}), rest)

    def _data_volumes(self) -> dict[str, Data]:
        """Volumes that edits of the pod have declared, by name."""
        return cast("dict[str, Data]", vars(self).setdefault("_volumes", {}))


def take_mounts(data: Data, volumes: Data) -> None:
    """Turn mounts of `volumes` that edits of `container_yml` added into mounts of the processes."""
    groups = cast("dict[str, dict[str, dict[str, Data]]]", data.get("groups", {}))
    lone = cast("dict[str, Data]", data.get("processes", {}))
    for process in [*(item for group in groups.values() for item in group["processes"].values()), *lone.values()]:
        overlay = process.get("container_overlay")
        if isinstance(overlay, dict):
            mounts, rest = mount_fields(overlay, volumes)
            process["mounts"] = [*cast("list[object]", process.get("mounts", [])), *mounts]
            process["container_overlay"] = rest


def alone(data: Data, name: str) -> Data:
    """`data` with no pod but `name`, and without what points to others."""
    kept: Data = {key: data[key] for key in _POD_CONTEXT if key in data}
    for part in ("groups", "processes"):
        pods = cast("dict[str, Data]", data.get(part, {}))
        if name in pods:
            kept[part] = {name: pods[name]}
            members = cast("dict[str, Data]", pods[name]["processes"]) if part == "groups" else {name: pods[name]}
            for process in members.values():
                process.pop("connects", None)
                process.pop("after", None)
    return kept
