"""Convert records to fields of a Kubernetes pod: the inverse of reading pods in `pods.py`."""

from __future__ import annotations

from collections.abc import Mapping

from symphony_charts.importers.report import Log
from symphony_charts.spec import model, sources


def env_object(name: str, value: sources.EnvValue) -> dict[str, object]:
    if isinstance(value, str):
        return {"name": name, "value": value}
    if value.secret is not None or value.config is not None:
        kind = "secretKeyRef" if value.secret is not None else "configMapKeyRef"
        source: dict[str, object] = {"name": value.secret or value.config, "key": value.key}
        if value.optional:
            source["optional"] = True
    elif value.field is not None:
        kind, source = "fieldRef", {"fieldPath": value.field}
    else:
        kind, source = "resourceFieldRef", {"resource": value.resource}
    return {"name": name, "valueFrom": {kind: source}}


def mount_object(mount: sources.Mount) -> dict[str, object]:
    result: dict[str, object] = {"name": mount.volume, "mountPath": mount.at}
    if mount.read_only:
        result["readOnly"] = True
    if mount.sub_path is not None:
        result["subPath"] = mount.sub_path
    return result


def volume_object(name: str, volume: sources.AnyVolume, log: Log) -> dict[str, object]:
    match volume:
        case sources.NfsVolume():
            source: dict[str, object] = {
                "nfs": {"server": volume.server, "path": volume.path} | _true(volume.read_only)
            }
        case sources.HostPathVolume():
            source = {"hostPath": {"path": volume.path} | ({"type": volume.kind} if volume.kind else {})}
        case sources.ClaimVolume():
            source = {"persistentVolumeClaim": {"claimName": volume.claim}}
        case sources.EmptyDirVolume():
            size = {"sizeLimit": volume.size} if volume.size else {}
            source = {"emptyDir": ({"medium": "Memory"} if volume.memory else {}) | size}
        case sources.SecretVolume():
            source = {"secret": {"secretName": volume.secret} | _files(volume.items, volume.mode)}
        case sources.ConfigVolume():
            source = {"configMap": {"name": volume.config} | _files(volume.items, volume.mode)}
        case sources.DeviceVolume():
            source = {"hostPath": {"path": volume.path}}
            log.note(f"volumes.{name}", "the device needs a privileged container, and this container is not privileged")
        case sources.GitVolume():
            source = {"emptyDir": {}}
            log.fault(
                f"volumes.{name}", "a DIJob cannot check out a Git repository", "put the repository into the image"
            )
    return {"name": name, **source}


def probe_object(probe: model.Probe, ports: Mapping[str, int]) -> dict[str, object]:
    """Return a readiness probe; service names become port numbers."""
    result: dict[str, object] = {}
    if probe.tcp is not None:
        result["tcpSocket"] = {"port": _port(probe.tcp.port, ports)}
    elif probe.http is not None:
        http = probe.http
        result["httpGet"] = {"path": http.path, "port": _port(http.port, ports), "scheme": http.scheme}
    elif probe.exec is not None:
        result["exec"] = {"command": list(probe.exec.command)}
    return result | {
        "initialDelaySeconds": probe.initial_delay,
        "periodSeconds": probe.period,
        "timeoutSeconds": probe.timeout,
        "failureThreshold": probe.failures,
        "successThreshold": probe.successes,
    }


def toleration_object(item: model.Toleration) -> dict[str, object]:
    result: dict[str, object] = {
        "key": item.key,
        "operator": item.operator,
        "value": item.value,
        "effect": item.effect,
        "tolerationSeconds": item.seconds,
    }
    return {key: value for key, value in result.items() if value is not None}


def _port(port: int | str, ports: Mapping[str, int]) -> int | str:
    return ports.get(port, port) if isinstance(port, str) else port


def _true(read_only: bool) -> dict[str, object]:
    return {"readOnly": True} if read_only else {}


def _files(items: Mapping[str, str], mode: str | None) -> dict[str, object]:
    result: dict[str, object] = {}
    if items:
        result["items"] = [{"key": key, "path": path} for key, path in items.items()]
    if mode is not None:
        result["defaultMode"] = int(mode, 8)
    return result
