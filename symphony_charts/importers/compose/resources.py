"""How many replicas a compose service has, how big, and on which devices."""

from __future__ import annotations

from symphony_charts.importers.compose.interpolation import size_of
from symphony_charts.integrations.common.fields import Fields

__all__ = ["read_resources"]


def read_resources(service: Fields) -> dict[str, object]:
    """The fields of a process that say how many, how big, and on which devices."""
    deploy = service.map("deploy")
    resources = deploy.map("resources")
    upper, lower = resources.map("limits"), resources.map("reservations")
    limits = _one_amount(_amounts(upper, "cpus", "memory"), _amounts(service, "cpus", "mem_limit"), upper)
    requests = _one_amount(_amounts(lower, "cpus", "memory"), _amounts(service, "", "mem_reservation"), lower)
    replicas = deploy.integer("replicas", 0, 100_000)
    if replicas is None:
        replicas = service.integer("scale", 0, 100_000)
    gpus = sum(_gpus(device) for device in lower.maps("devices"))
    gpus += _service_gpus(service)
    if (mode := deploy.text("mode")) not in (None, "replicated"):
        what = f"deploy mode {mode} is not carried over: replicas are a number here"
        deploy.log.lost(deploy.at("mode"), what, "set `replicas`")
    deploy.get("restart_policy")  # read by `_restart`
    upper.note_unread("of the limits is not carried over")
    lower.note_unread("of the reservations is not carried over")
    resources.note_unread("of the resources is not carried over")
    deploy.note_unread("of deploy is not carried over")
    data: dict[str, object] = {"limits": limits, "requests": requests}
    if replicas is not None and replicas != 1:
        data["replicas"] = replicas
    if gpus:
        data["gpus"] = gpus
    return data


def _one_amount(deployed: dict[str, str], own: dict[str, str], resources: Fields) -> dict[str, str]:
    """The amounts of a service, its own before those of its `deploy`, which compose wants to be equal."""
    for name, amount in own.items():
        if deployed.get(name, amount) != amount:
            path = resources.at({"cpu": "cpus"}.get(name, name))
            resources.log.lost(path, f"the service itself says another amount of {name}, which counts")
    return deployed | own


def _amounts(fields: Fields, cpu: str, memory: str) -> dict[str, str]:
    amounts: dict[str, str] = {}
    if cpu and (cores := fields.number(cpu)) is not None:
        if cores <= 0:
            fields.log.lost(fields.at(cpu), "no CPU at all means no limit; it is not carried over")
        else:
            amounts["cpu"] = f"{max(round(cores * 1000), 1)}m"
    if (value := fields.get(memory)) is not None and (size := size_of(value, fields.log, fields.at(memory))):
        amounts["memory"] = size
    return amounts


def _gpus(device: Fields) -> int:
    """The GPUs of one reserved device; `count: all` cannot be known here and counts as one."""
    capabilities = device.texts("capabilities")
    count, ids = device.get("count"), device.texts("device_ids")
    if device.text("driver") not in (None, "nvidia"):
        device.drop("driver", "GPUs are asked for as nvidia.com/gpu")
    device.note_unread("of a device is not carried over")
    if "gpu" not in capabilities and "nvidia" not in capabilities:
        device.log.lost(device.path, "only GPUs are carried over of devices")
        return 0
    if ids:
        device.log.lost(device.at("device_ids"), "which GPUs they are is not carried over, only how many")
        return len(ids)
    if count in (None, "all"):
        device.log.lost(
            device.at("count"), "all GPUs of the machine: how many these are is not known; one is asked for"
        )
        return 1
    return device.integer("count", 0, 1000) or 0


def _service_gpus(service: Fields) -> int:
    """`gpus: all` or a list of devices at the service itself."""
    value = service.get("gpus")
    if value == "all":
        service.log.lost(
            service.at("gpus"), "all GPUs of the machine: how many these are is not known; one is asked for"
        )
        return 1
    total = 0
    for device in service.maps("gpus"):
        device.texts("capabilities")
        if device.text("driver") not in (None, "nvidia"):
            device.drop("driver", "GPUs are asked for as nvidia.com/gpu")
        total += device.integer("count", 0, 1000) or len(device.texts("device_ids")) or 1
    return total
