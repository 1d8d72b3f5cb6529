"""A Kubernetes pod template becomes part of an experiment: its processes, its steps, and the pod's own settings."""

from __future__ import annotations

from dataclasses import dataclass, field

from symphony_charts.importers.common.names import Volumes
from symphony_charts.importers.common.pod_volumes import PodVolumes
from symphony_charts.integrations.common.fields import Fields
from symphony_charts.integrations.common.pods import read_process, read_step

__all__ = ["PodParts", "read_pod", "read_settings"]

_SETTINGS = {
    "serviceAccountName": "service_account",
    "priorityClassName": "priority_class",
}
_POLICIES = {"Always": "always", "OnFailure": "on-failure", "Never": "never"}


@dataclass(slots=True, kw_only=True)
class PodParts:
    """The content of a pod template as data of an experiment.

    `settings` are the fields of PodSettings, `processes` and `steps` go by container name, `ports` holds each
    container's named ports, `port_objects` those as they were written, `restart` is Kubernetes' restart policy as an
    experiment writes it, None if not said.
    """

    path: str
    settings: dict[str, object] = field(default_factory=dict)
    processes: dict[str, dict[str, object]] = field(default_factory=dict)
    paths: dict[str, str] = field(default_factory=dict)
    steps: dict[str, dict[str, object]] = field(default_factory=dict)
    ports: dict[str, dict[str, int]] = field(default_factory=dict)
    port_objects: dict[str, object] = field(default_factory=dict)
    image_pull_secrets: list[str] = field(default_factory=list)
    restart: str | None = None


def read_pod(template: Fields, volumes: Volumes, shared: list[Fields]) -> PodParts:
    """The parts of a pod template; `shared` are volumes that its owner adds to the pod."""
    spec = template.map("spec")
    parts = PodParts(path=template.path)
    _read_metadata(template.map("metadata"), parts)
    template.note_unread("of a pod template is not carried over")
    available = PodVolumes(volumes)
    for volume in [*shared, *spec.maps("volumes")]:
        available.add(volume)
    for container in spec.maps("initContainers"):
        _read_container(container, parts, available, is_init=True)
    containers = spec.maps("containers")
    if not containers:
        spec.log.fault(spec.at("containers"), "the pod has no containers", "give it at least one")
    for container in containers:
        _read_container(container, parts, available, is_init=False)
    _read_spec(spec, parts, available)
    return parts


def _read_metadata(metadata: Fields, parts: PodParts) -> None:
    for key in ("labels", "annotations"):
        if values := metadata.text_map(key):
            parts.settings[key] = values
    metadata.skip("creationTimestamp", "name", "namespace")
    metadata.note_unread("of a pod's metadata is not carried over")


def _read_container(container: Fields, parts: PodParts, volumes: PodVolumes, *, is_init: bool) -> None:
    name = container.required_text("name", "main", "name the container")
    if name in parts.processes or name in parts.steps:
        container.log.fault(
            container.at("name"), f'two containers of one pod are called "{name}"', "rename one of them"
        )
        return
    is_sidecar = is_init and container.text("restartPolicy") == "Always"
    parts.paths[name] = container.path
    if is_init and not is_sidecar:
        parts.steps[name] = read_step(container, volumes)
        return
    parts.ports[name] = _ports(container)
    parts.port_objects[name] = container.raw("ports")
    parts.processes[name] = read_process(container, volumes, parts.ports[name])
    if is_sidecar:
        parts.processes[name]["lifecycle"] = "service"


def _ports(container: Fields) -> dict[str, int]:
    ports: dict[str, int] = {}
    for port in container.maps("ports"):
        number = port.integer("containerPort", 1, 65535)
        name = port.text("name") or f"port-{number}"
        if number is not None:
            ports[name] = number
        if (port.text("protocol") or "TCP") != "TCP":
            port.log.note(port.path, "only TCP ports are services of an experiment; this one is not carried over")
            ports.pop(name, None)
        port.note_unread("of a port is not carried over")
    return ports


def _read_spec(spec: Fields, parts: PodParts, volumes: PodVolumes) -> None:
    secrets = [item.required_text("name", "") for item in spec.maps("imagePullSecrets")]
    parts.image_pull_secrets = [name for name in secrets if name]
    if (policy := spec.text("restartPolicy")) is not None:
        if policy not in _POLICIES:
            spec.log.fault(
                spec.at("restartPolicy"), f'"{policy}" is no restart policy', f"one of {', '.join(_POLICIES)}"
            )
        parts.restart = _POLICIES.get(policy)
    read_settings(spec, parts.settings, volumes)


def read_settings(spec: Fields, settings: dict[str, object], volumes: PodVolumes) -> None:
    """Put the fields of a pod's spec that nobody read yet into `settings`, as those of an experiment's pod."""
    for theirs, ours in _SETTINGS.items():
        if (text := spec.text(theirs)) is not None and text:
            settings[ours] = text
    if "serviceAccount" in spec:
        settings.setdefault("service_account", spec.text("serviceAccount") or "")
    if selector := spec.text_map("nodeSelector"):
        settings["node_selector"] = selector
    if tolerations := [_toleration(item) for item in spec.maps("tolerations")]:
        settings["tolerations"] = tolerations
    if (seconds := spec.integer("terminationGracePeriodSeconds", 0, 2**31 - 1)) is not None:
        settings["grace_period"] = seconds
    if (seconds := spec.integer("activeDeadlineSeconds", 1, 2**31 - 1)) is not None:
        settings["deadline"] = seconds
    _read_rest(spec, settings, volumes)


def _read_rest(spec: Fields, settings: dict[str, object], volumes: PodVolumes) -> None:
    """Keep fields that an experiment does not have as an overlay of the pod."""
    overlay = spec.rest()
    for key in overlay:
        spec.log.changed(spec.at(key), f"`{key}` is kept as an overlay of the pod (`pod_overlay`)")
    if volumes.foreign:
        overlay["volumes"] = list(volumes.foreign.values())
    if overlay:
        settings["pod_overlay"] = {"spec": overlay}


def _toleration(item: Fields) -> dict[str, object]:
    toleration: dict[str, object] = {key: item.text(key) for key in ("key", "operator", "value", "effect")}
    toleration["seconds"] = item.integer("tolerationSeconds")
    item.note_unread("of a toleration is not carried over")
    return {key: value for key, value in toleration.items() if value is not None and value != ""}
