"""A builder renders what it becomes, and records the edits that are made to that view."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, cast

from symphony_charts.formats.overlay import merge_overlay
from symphony_charts.spec.builder.common import Data
from symphony_charts.spec.builder.keywords import ExperimentFields, Unpack
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.overlay_fields import ADDED, container_fields, pod_fields

__all__ = ["ExperimentBuilder", "Viewed", "alone"]

# What an experiment says of a pod beside the pod itself.
_POD_CONTEXT: tuple[str, ...] = ("name", "owner", "team", "image", "volumes", "security", "workload")


class ExperimentBuilder(Protocol):
    """The experiment that processes and groups belong to, which they ask for its pods and tell of new processes."""

    name: str

    def set(self, **fields: Unpack[ExperimentFields]) -> None:
        """Set fields of the experiment by name; None leaves a field as it is."""

    def to_data(self) -> Data:
        """Return the experiment as data, unchecked."""

    def finish(self, *, for_cluster: bool = False) -> Experiment:
        """Return the frozen record; raises SpecError with everything that is wrong."""

    def render_pod(self, name: str) -> Data | None:
        """Return the pod `name` as it will be emitted, or None if it cannot be rendered."""

    def _declare(self, process: Any) -> None:
        """Take a process that was added to a group."""


class Viewed:
    """A builder whose pod or container can be looked at and edited."""

    name: str
    experiment: ExperimentBuilder | None
    _data: Data

    def _pod_name(self) -> str:
        raise NotImplementedError

    def rendered(self, kind: str) -> Data:
        """Return the pod or container as it will be emitted, or only the edits if it cannot be rendered yet."""
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
        fields, rest = container_fields(overlay) if kind == "container" else pod_fields(overlay)
        for field, value in fields.items():
            if value is None:
                self._data.pop(field, None)
            else:
                old = cast("Data", self._data.get(field, {})) if field in ADDED else {}
                self._data[field] = {**old, **cast("Data", value)} if field in ADDED else value
        if rest:
            field = f"{kind}_overlay"
            self._data[field] = merge_overlay(cast("Data", self._data.get(field, {})), rest)


def alone(data: Data, name: str) -> Data:
    """Return `data` with no pod but `name`, and without references to others."""
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
