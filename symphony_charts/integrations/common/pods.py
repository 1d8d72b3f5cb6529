"""A container of a Kubernetes pod becomes a process or, if it runs before the others, a step."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from symphony_charts.importers.common.pod_volumes import PodVolumes
from symphony_charts.integrations.common.fields import Fields

__all__ = ["GPU", "read_process", "read_step"]

GPU = "nvidia.com/gpu"


def read_process(
    container: Fields, volumes: PodVolumes, ports: Mapping[str, int] = MappingProxyType({})
) -> dict[str, object]:
    """The container's fields as those of a process; what a process has no field for goes to its overlay.

    `ports` are those that probes may mean by name.
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
    """An init container's fields as those of a step."""
    overlay: dict[str, object] = {}
    step = _common(container, volumes, overlay)
    overlay |= container.rest()
    for key in overlay:
        if key != "volumeMounts":
            container.log.changed(container.at(key), f"`{key}` is kept as an overlay of the step (`container_overlay`)")
    step["container_overlay"] = overlay
    return {key: value for key, value in step.items() if value not in (None, [], {})}


def _with_numbers(overlay: dict[str, object], ports: Mapping[str, int]) -> dict[str, object]:
    """The overlay with the numbers of ports in place of their names, in probes and hooks."""
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
    """The environment as a map. Kubernetes takes the last of two variables of one name, and so does this."""
    env: dict[str, object] = {}
    for variable in container.maps("env"):
        name = variable.required_text("name", "")
        if name in env:
            variable.log.changed(variable.at("name"), f"{name} stands there twice; the last one counts")
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
    """A value from elsewhere; None for kinds that an experiment has no field for."""
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
    """The number of GPUs, taken out of requests and limits where both say the same."""
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
    """The readiness probe; other probes are left to the overlay."""
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
            action.log.fault(action.at("port"), f'the container has no port called "{value}"', "say its number")
        return ports.get(value, value)
    return action.integer("port", 1, 65535) or 1
