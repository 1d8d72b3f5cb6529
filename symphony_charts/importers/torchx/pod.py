"""Build the pod that TorchX's MCAD scheduler makes of one replica of a role.

Source: meta-pytorch/torchx, role_to_pod in torchx/schedulers/kubernetes_mcad_scheduler.py.
"""

from __future__ import annotations

from collections.abc import Mapping

from symphony_charts.importers.torchx.mounts import AnyMount, BindMount, DeviceMount, VolumeMount
from symphony_charts.integrations.torchx.appdef import Resource, Role

__all__ = ["pod_spec"]

_INSTANCE_TYPE = "node.kubernetes.io/instance-type"
_GPU = "nvidia.com/gpu"
# What TorchX takes off the requests for the node itself, since it means to fill whole nodes.
_RESERVED_MILLICPU = 100
_RESERVED_MB = 1024


def pod_spec(
    role: Role, *, container: str, service_account: str | None, extra_env: Mapping[str, str]
) -> dict[str, object]:
    """Return the spec of the pod of one replica, whose macros are filled in already."""
    volumes: list[object] = [{"name": "dshm", "emptyDir": {"medium": "Memory"}}]
    mounts: list[object] = [{"name": "dshm", "mountPath": "/dev/shm"}]  # noqa: S108 - a path in the container
    for index, mount in enumerate(role.mounts):
        volume, volume_mount = _mount(f"mount-{index}", mount)
        volumes.append(volume)
        mounts.append(volume_mount)
    is_privileged = any(isinstance(mount, DeviceMount) for mount in role.mounts)
    made: dict[str, object] = {
        "name": container,
        "image": role.image,
        "command": [role.entrypoint, *role.args],
        "env": [*({"name": name, "value": value} for name, value in role.env.items()), dict(extra_env)],
        "ports": [{"name": name, "containerPort": port} for name, port in role.port_map.items()],
        "resources": _resources(role.resource),
        "securityContext": {"privileged": True} if is_privileged else {},
        "volumeMounts": mounts,
    }
    instance = role.resource.capabilities.get(_INSTANCE_TYPE)
    spec: dict[str, object] = {
        "containers": [made],
        "restartPolicy": "Never",
        "nodeSelector": {} if instance is None else {_INSTANCE_TYPE: instance},
        "volumes": volumes,
    }
    if service_account is not None:
        spec["serviceAccountName"] = service_account
    return spec


def _resources(resource: Resource) -> dict[str, object]:
    """Limits as asked for; requests lower by what the node keeps, and never below nothing, so possibly nothing."""
    limits: dict[str, str] = {}
    requests: dict[str, str] = {}
    if resource.cpu > 0:
        millis = int(resource.cpu * 1000)
        limits["cpu"], requests["cpu"] = f"{millis}m", f"{max(millis - _RESERVED_MILLICPU, 0)}m"
    if resource.memory_mb > 0:
        limits["memory"] = f"{resource.memory_mb}M"
        requests["memory"] = f"{max(resource.memory_mb - _RESERVED_MB, 0)}M"
    if resource.gpu > 0:
        limits[_GPU] = requests[_GPU] = str(resource.gpu)
    limits |= {name: str(count) for name, count in resource.devices.items()}
    return {"limits": limits, "requests": requests}


def _mount(name: str, mount: AnyMount) -> tuple[dict[str, object], dict[str, object]]:
    if isinstance(mount, VolumeMount):
        volume: dict[str, object] = {"name": name, "persistentVolumeClaim": {"claimName": mount.src}}
        is_read_only = mount.read_only
    else:
        volume = {"name": name, "hostPath": {"path": mount.src_path}}
        is_read_only = mount.read_only if isinstance(mount, BindMount) else mount.is_read_only
    return volume, {"name": name, "mountPath": mount.dst_path, "readOnly": is_read_only}
