"""Read Kubernetes pods as processes, steps, volumes and settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from symphony_charts.formats.field_reader import show
from symphony_charts.integrations.common.fields import Fields, Volumes

_DEFAULT_MODE = 0o644


@dataclass(slots=True)
class PodVolumes:
    """The volumes that one pod may mount, by their names in the pod.

    `names` maps them to names of the experiment; `foreign` holds volumes without a record in an experiment (csi,
    projected...): they stay unchanged, in the overlay of the pod. `read_only` holds claims that are read-only as a
    whole, which is set at their mounts.
    """

    declared: Volumes
    names: dict[str, str] = field(default_factory=dict)
    foreign: dict[str, dict[str, object]] = field(default_factory=dict)
    read_only: set[str] = field(default_factory=set)

    def add(self, volume: Fields) -> None:
        """Declare one entry of a `volumes` list."""
        name = volume.required_text("name", "volume", "name the volume")
        if name in self.names or name in self.foreign:
            volume.log.fault(volume.at("name"), f'the pod has two volumes named "{name}"', "rename one of them")
            return
        content = _read_volume(volume)
        if content is None:
            self.foreign[name] = {"name": name, **volume.rest()}
        else:
            self.names[name] = self.declared.declare(name, content)
            if volume.map("persistentVolumeClaim").flag("readOnly"):
                self.read_only.add(name)
            volume.note_unread("of a volume is not carried over")

    def mount(self, mount: Fields) -> tuple[dict[str, object] | None, dict[str, object] | None]:
        """Return one entry of a `volumeMounts` list as a mount of the experiment, or else unchanged for the overlay."""
        name = mount.required_text("name", "", "name the volume to mount")
        at = mount.required_text("mountPath", "/volume", "give the path where the volume is mounted")
        if name and name not in self.names and name not in self.foreign:
            names = ", ".join([*self.names, *self.foreign]) or "none"
            mount.log.fault(mount.at("name"), f'unknown volume "{name}"', f"volumes of the pod: {names}")
            return None, None
        if name in self.foreign:
            mount.log.changed(mount.path, f'a spec has no such kind of volume; "{name}" is kept as an overlay')
            return None, {"name": name, "mountPath": at, **mount.rest()}
        result: dict[str, object] = {"volume": self.names.get(name, name), "at": at}
        if mount.flag("readOnly") or name in self.read_only:
            result["read_only"] = True
        if (sub_path := mount.text("subPath")) is not None:
            result["sub_path"] = sub_path
        mount.note_unread("of a mount is not carried over")
        return result, None


def _read_volume(volume: Fields) -> dict[str, object] | None:
    """Return the volume as data of the experiment's records; None for kinds without a record."""
    if "hostPath" in volume:
        source = volume.map("hostPath")
        content = _said({"type": "host_path", "path": _path(source), "kind": source.text("type") or None})
    elif "emptyDir" in volume or (volume.keys() == ("name", "emptyDir")):
        source = volume.map("emptyDir")
        is_memory = (source.text("medium") or "") == "Memory"
        content = _said({"type": "empty_dir", "memory": is_memory or None, "size": source.text("sizeLimit")})
    elif "nfs" in volume:
        source = volume.map("nfs")
        server = source.required_text("server", "server", "name the NFS server")
        read_only = source.flag("readOnly") or None
        content = _said({"type": "nfs", "server": server, "path": _path(source), "read_only": read_only})
    elif "persistentVolumeClaim" in volume:
        source = volume.map("persistentVolumeClaim")
        content = {"type": "claim", "claim": source.required_text("claimName", "claim", "name the claim")}
        if source.flag("readOnly"):
            source.log.changed(source.at("readOnly"), "`readOnly` of a claim becomes `read_only` of its mounts")
    elif "secret" in volume:
        source = volume.map("secret")
        secret = source.required_text("secretName", "secret", "name the Secret")
        content = {"type": "secret", "secret": secret, **_files(source)}
    elif "configMap" in volume:
        source = volume.map("configMap")
        content = {"type": "config", "config": source.required_text("name", "config", "name it"), **_files(source)}
    else:
        return None
    source.note_unread("of a volume is not carried over")
    return content


def _path(source: Fields) -> str:
    return source.required_text("path", "/volume", "give the path")


def _files(source: Fields) -> dict[str, object]:
    items = {}
    for item in source.maps("items"):
        items[item.required_text("key", "key")] = item.required_text("path", "path")
        item.note_unread("of a file is not carried over")
    mode = mode_text(source, "defaultMode")
    return _said({"items": items or None, "mode": mode})


def mode_text(source: Fields, key: str) -> str | None:
    """Return a file mode as octal text; Kubernetes takes numbers, and text in YAML's old octal form."""
    value = source.get(key)
    if value is None:
        return None
    if (
        isinstance(value, str)
        and 3 <= len(value.removeprefix("0o")) <= 5
        and set(value.removeprefix("0o")) <= set("01234567")
    ):
        number = int(value.removeprefix("0o"), 8)
    else:
        number = source.integer(key, 0, 0o777) or 0
    if not 0 <= number <= 0o777:
        source.log.fault(source.at(key), f"{show(value)} is not a file mode", "write it in octal, such as 0644")
        return None
    return None if number == _DEFAULT_MODE else f"0{number:o}"


def _said(fields: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in fields.items() if value is not None}


GPU = "nvidia.com/gpu"


def read_process(
    container: Fields, volumes: PodVolumes, ports: Mapping[str, int] = MappingProxyType({})
) -> dict[str, object]:
    """Return the container's fields as fields of a process; others go to its overlay.

    `ports` are the ports that probes may use by name.
    """
    overlay: dict[str, object] = {}
    process = _common(container, volumes, overlay)
    gpus = _gpus(process)
    ready = _probe(container, ports)
    process |= {
        "image_pull_policy": container.text("imagePullPolicy"),
        "gpus": gpus,
        "ready": ready,
    }
    overlay |= _with_numbers(container.rest(), ports)
    for key in overlay:
        if key != "volumeMounts":
            container.log.changed(
                container.at(key), f"`{key}` is kept as an overlay of the container (`container_overlay`)"
            )
    process["container_overlay"] = overlay
    return {key: value for key, value in process.items() if value not in (None, [], {}, 0)}


def read_step(container: Fields, volumes: PodVolumes) -> dict[str, object]:
    overlay: dict[str, object] = {}
    step = _common(container, volumes, overlay)
    overlay |= container.rest()
    for key in overlay:
        if key != "volumeMounts":
            container.log.changed(container.at(key), f"`{key}` is kept as an overlay of the step (`container_overlay`)")
    step["container_overlay"] = overlay
    return {key: value for key, value in step.items() if value not in (None, [], {})}


def _with_numbers(overlay: dict[str, object], ports: Mapping[str, int]) -> dict[str, object]:
    """Return the overlay with port numbers instead of port names, in probes and hooks."""
    return {key: value if key == "ports" else _numbered(value, ports) for key, value in overlay.items()}


def _numbered(value: object, ports: Mapping[str, int]) -> object:
    if not isinstance(value, dict):
        return value
    port = value.get("port")
    numbered = {key: _numbered(item, ports) for key, item in value.items()}
    return {**numbered, "port": ports[port]} if isinstance(port, str) and port in ports else numbered


def _common(container: Fields, volumes: PodVolumes, overlay: dict[str, object]) -> dict[str, object]:
    container.skip("name", "ports")
    resources = container.map("resources")
    mounts = []
    foreign = []
    for item in container.maps("volumeMounts"):
        mount, as_it_is = volumes.mount(item)
        mounts += [mount] if mount is not None else []
        foreign += [as_it_is] if as_it_is is not None else []
    if foreign:
        overlay["volumeMounts"] = foreign
    common: dict[str, object] = {
        "image": container.text("image"),
        "command": container.texts("command") or None,
        "args": container.texts("args") or None,
        "cwd": container.text("workingDir") or None,
        "env": _read_env(container, overlay),
        "requests": resources.text_map("requests"),
        "limits": resources.text_map("limits"),
        "mounts": mounts,
    }
    resources.note_unread("of resources is not carried over")
    return common


def _read_env(container: Fields, overlay: dict[str, object]) -> dict[str, object]:
    """Return the environment as a map. As in Kubernetes, the last variable of a name wins."""
    env: dict[str, object] = {}
    for variable in container.maps("env"):
        name = variable.required_text("name", "")
        if name in env:
            variable.log.changed(variable.at("name"), f"{name} appears twice; the last value is used")
        if "valueFrom" in variable:
            source = _env_source(variable.map("valueFrom"))
            if source is None:
                overlay.setdefault("env", [])
                held = overlay["env"]
                if isinstance(held, list):
                    held.append({"name": name, **variable.rest(), "valueFrom": variable.raw("valueFrom")})
                continue
            env[name] = source
        else:
            env[name] = variable.text("value") or ""
        variable.note_unread("of a variable is not carried over")
    return {name: value for name, value in env.items() if name}


def _env_source(source: Fields) -> dict[str, object] | None:
    """Return a variable's source; None for kinds that an experiment has no field for."""
    result: dict[str, object] = {}
    if "secretKeyRef" in source or "configMapKeyRef" in source:
        is_secret = "secretKeyRef" in source
        ref = source.map("secretKeyRef" if is_secret else "configMapKeyRef")
        result["secret" if is_secret else "config"] = ref.required_text("name", "name")
        result["key"] = ref.required_text("key", "key")
        if ref.flag("optional"):
            result["optional"] = True
    elif "fieldRef" in source:
        ref = source.map("fieldRef")
        ref.skip("apiVersion")
        result["field"] = ref.required_text("fieldPath", "metadata.name")
    elif "resourceFieldRef" in source:
        ref = source.map("resourceFieldRef")
        if ref.text("divisor") not in (None, "0", "1") or "containerName" in ref:
            ref.rest()
            return None
        result["resource"] = ref.required_text("resource", "limits.memory")
    else:
        return None
    ref.note_unread("of a variable's source is not carried over")
    return result


def _gpus(process: dict[str, object]) -> int:
    """Return the number of GPUs, removed from requests and limits if both agree."""
    requests, limits = process["requests"], process["limits"]
    if not isinstance(requests, dict) or not isinstance(limits, dict):
        return 0
    count = limits.get(GPU, requests.get(GPU))
    if not isinstance(count, str) or not count.isdecimal() or not count.isascii() or len(count) > 6:
        return 0
    if requests.get(GPU, count) != count:
        return 0
    requests.pop(GPU, None)
    limits.pop(GPU, None)
    return int(count)


_PROBE_TIMES = {
    "initialDelaySeconds": ("initial_delay", 0),
    "periodSeconds": ("period", 1),
    "timeoutSeconds": ("timeout", 1),
    "failureThreshold": ("failures", 1),
    "successThreshold": ("successes", 1),
}


def _probe(container: Fields, ports: Mapping[str, int]) -> dict[str, object] | None:
    """Return the readiness probe; other probes stay in the overlay."""
    if "readinessProbe" not in container:
        return None
    probe = container.map("readinessProbe")
    ready: dict[str, object] = {}
    for theirs, (ours, low) in _PROBE_TIMES.items():
        if (seconds := probe.integer(theirs, low, 2**31 - 1)) is not None:
            ready[ours] = seconds
    if "tcpSocket" in probe:
        action = probe.map("tcpSocket")
        ready["tcp"] = {"port": _port(action, ports)}
    elif "httpGet" in probe:
        action = probe.map("httpGet")
        http: dict[str, object] = {"port": _port(action, ports), "path": action.text("path") or "/"}
        if (scheme := action.text("scheme")) is not None:
            http["scheme"] = scheme
        ready["http"] = http
    elif "exec" in probe:
        action = probe.map("exec")
        ready["exec"] = {"command": action.texts("command")}
    else:
        probe.note_unread("of a probe is not carried over")
        return None
    action.note_unread("of a probe is not carried over")
    probe.note_unread("of a probe is not carried over")
    return ready


def _port(action: Fields, ports: Mapping[str, int]) -> int | str:
    value = action.get("port")
    if isinstance(value, str) and not value.isdecimal():
        if ports and value not in ports:
            action.log.fault(action.at("port"), f'the container has no port named "{value}"', "give its number")
        return ports.get(value, value)
    return action.integer("port", 1, 65535) or 1


_SETTINGS = {
    "serviceAccountName": "service_account",
    "priorityClassName": "priority_class",
}
_POLICIES = {"Always": "always", "OnFailure": "on-failure", "Never": "never"}


@dataclass(slots=True, kw_only=True)
class PodParts:
    """The content of a pod template as data of an experiment.

    `settings` are fields of PodSettings. `processes` and `steps` are keyed by container name. `ports` holds each
    container's named ports, `port_objects` the original port lists. `restart` is the restart policy as an experiment
    writes it, None if not set.
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
    """Return the parts of a pod template; `shared` are volumes that its owner adds to the pod."""
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
        spec.log.fault(spec.at("containers"), "the pod has no containers", "add a container")
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
        container.log.fault(container.at("name"), f'the pod has two containers named "{name}"', "rename one of them")
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
                spec.at("restartPolicy"), f'"{policy}" is not a restart policy', f"one of {', '.join(_POLICIES)}"
            )
        parts.restart = _POLICIES.get(policy)
    read_settings(spec, parts.settings, volumes)


def read_settings(spec: Fields, settings: dict[str, object], volumes: PodVolumes) -> None:
    """Put the unread fields of a pod's spec into `settings`, as fields of an experiment's pod."""
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
