"""The pod is built that TorchX's Kubernetes schedulers make of one replica of a role.

Source: meta-pytorch/torchx, role_to_pod in torchx/schedulers/kubernetes_{mcad_,}scheduler.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from symphony_charts.importers.torchx.appdef import Role
from symphony_charts.importers.torchx.mounts import AnyMount, BindMount, DeviceMount, VolumeMount

__all__ = ["FIELD_PATH", "PodOptions", "pod_spec"]

FIELD_PATH = "[FIELD_PATH]"
_INSTANCE_TYPE = "node.kubernetes.io/instance-type"
_EFA = "vpc.amazonaws.com/efa"
_GPU = "nvidia.com/gpu"
# What TorchX takes off the requests for the node itself, since it means to fill whole nodes.
_RESERVED_MILLICPU = 100
_RESERVED_MB = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class PodOptions:
    """What a pod takes from the run options; None means TorchX's default."""

    container: str
    service_account: str | None = None
    extra_env: tuple[Mapping[str, str], ...] = ()
    reserved_millicpu: int | None = None
    reserved_mb: int | None = None
    efa_devices: int | None = None
    has_field_refs: bool = False


def pod_spec(role: Role, options: PodOptions) -> dict[str, object]:
    """The spec of the pod of one replica, whose macros are filled in already."""
    volumes: list[object] = [{"name": "dshm", "emptyDir": {"medium": "Memory"}}]
    mounts: list[object] = [{"name": "dshm", "mountPath": "/dev/shm"}]  # noqa: S108 - a path in the container
    for index, mount in enumerate(role.mounts):
        volume, volume_mount = _mount(f"mount-{index}", mount)
        volumes.append(volume)
        mounts.append(volume_mount)
    is_privileged = any(isinstance(mount, DeviceMount) for mount in role.mounts)
    container: dict[str, object] = {
        "name": options.container,
        "image": role.image,
        "command": [role.entrypoint, *role.args],
        "env": [*_env(role, options), *map(dict, options.extra_env)],
        "ports": [{"name": name, "containerPort": port} for name, port in role.port_map.items()],
        "resources": _resources(role, options),
        "securityContext": {"privileged": True} if is_privileged else {},
        "volumeMounts": mounts,
    }
    instance = role.resource.capabilities.get(_INSTANCE_TYPE)
    spec: dict[str, object] = {
        "containers": [container],
        "restartPolicy": "Never",
        "nodeSelector": {} if instance is None else {_INSTANCE_TYPE: instance},
        "volumes": volumes,
    }
    if options.service_account is not None:
        spec["serviceAccountName"] = options.service_account
    return spec


def _env(role: Role, options: PodOptions) -> list[dict[str, object]]:
    return [
        {"name": name, "valueFrom": {"fieldRef": {"fieldPath": value.removeprefix(FIELD_PATH)}}}
        if options.has_field_refs and value.startswith(FIELD_PATH)
        else {"name": name, "value": value}
        for name, value in role.env.items()
    ]


def _resources(role: Role, options: PodOptions) -> dict[str, object]:
    """Limits as asked for; requests lower by what the node keeps, and never below nothing, so possibly nothing."""
    limits: dict[str, str] = {}
    requests: dict[str, str] = {}
    resource = role.resource
    millicpu = _RESERVED_MILLICPU if options.reserved_millicpu is None else options.reserved_millicpu
    megabytes = _RESERVED_MB if options.reserved_mb is None else options.reserved_mb
    if resource.cpu > 0:
        millis = int(resource.cpu * 1000)
        limits["cpu"], requests["cpu"] = f"{millis}m", f"{max(millis - millicpu, 0)}m"
    if resource.memory_mb > 0:
        limits["memory"] = f"{resource.memory_mb}M"
        requests["memory"] = f"{max(resource.memory_mb - megabytes, 0)}M"
    if resource.gpu > 0:
        limits[_GPU] = requests[_GPU] = str(resource.gpu)
    limits |= {name: str(count) for name, count in resource.devices.items()}
    if options.efa_devices == 0:
        limits.pop(_EFA, None)
    elif options.efa_devices is not None:
        limits[_EFA] = str(options.efa_devices)
    return {"limits": limits, "requests": requests}


def _mount(name: str, mount: AnyMount) -> tuple[dict[str, object], dict[str, object]]:
    """A volume and its mount in the container."""
    if isinstance(mount, VolumeMount):
        volume: dict[str, object] = {"name": name, "persistentVolumeClaim": {"claimName": mount.src}}
        is_read_only = mount.read_only
    else:
        volume = {"name": name, "hostPath": {"path": mount.src_path}}
        is_read_only = mount.read_only if isinstance(mount, BindMount) else mount.is_read_only
    return volume, {"name": name, "mountPath": mount.dst_path, "readOnly": is_read_only}
