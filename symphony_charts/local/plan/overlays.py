"""Overlays may ask for what only a cluster does; the notes here say so in plain words."""

from __future__ import annotations

from collections.abc import Iterator

from symphony_charts.formats.data import maps, sub
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import Pod, pods_of

__all__ = ["foreign_containers", "overlay_notes"]

_UNSEEN = ("env", "envFrom", "lifecycle", "volumeMounts")


def foreign_containers(pod: Pod) -> list[str]:
    """Return the containers that the overlay of `pod` adds to it."""
    spec = sub(pod.settings.pod_overlay, "spec")
    return [str(item.get("name")) for key in ("containers", "initContainers") for item in maps(spec, key)]


def overlay_notes(experiment: Experiment) -> Iterator[str]:
    """Yield a note for each container that does not run here, and for each overlay that has no effect here.

    What has a field is that field already: the rest means something to a container runtime alone.
    """
    for pod in pods_of(experiment).values():
        for name in foreign_containers(pod):
            if name in experiment.prepare:
                yield f'what pod_overlay of "{pod.name}" says of the step "{name}" does not count here'
            else:
                yield f'container "{name}" of pod_overlay of "{pod.name}" is not run here'
        for name, process in pod.processes.items():
            unseen = [key for key in _UNSEEN if process.container_overlay.get(key)]
            if unseen:
                who = f"{pod.name}/{name}" if pod.is_group else name
                seen_nowhere = ", ".join(f"`{key}`" for key in unseen)
                yield f'process "{who}" does not see {seen_nowhere} of its overlay here'
