"""Rules about the requests and limits of containers and pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from symphony_charts.chart.lint.finding import Finding, Objects, error, pods_in, warning
from symphony_charts.formats.data import maps, sub
from symphony_charts.formats.quantity import MIB, is_quantity, quantity


def check_resources(objects: Objects) -> Iterator[Finding]:
    """Yield requests above their limits, invalid quantities, and volumes in memory that fill the limit of a container.

    Sources: Kubernetes, pkg/apis/core/validation, ValidateResourceRequirements; Kubernetes docs, "Volumes", emptyDir:
    a file in memory counts against the memory limit of the container that wrote it.
    """
    for where, pod in pods_in(objects):
        spec = sub(pod, "spec")
        sizes = _sizes_in_memory(spec)
        for kind in ("initContainers", "containers"):
            for member in maps(spec, kind):
                path = f"{where}spec.{kind}.{member.get('name')}.resources"
                yield from _resources(sub(member, "resources"), path)
                yield from _in_memory(member, sizes, path)
        yield from _resources(sub(spec, "resources"), f"{where}spec.resources")


def _resources(resources: dict[str, object], path: str) -> Iterator[Finding]:
    requests, limits = sub(resources, "requests"), sub(resources, "limits")
    for field, amounts in (("requests", requests), ("limits", limits)):
        for name, amount in sorted(amounts.items()):
            if not is_quantity(str(amount)):
                yield error("quantity", f"{path}.{field}.{name}", f'"{amount}" is not a quantity of Kubernetes')
            elif name == "memory" and 0 < quantity(str(amount)) < MIB:
                what = f"{amount} of memory are bytes, too few for any program"
                step = f'add the unit, as in "{amount}Gi"' if str(amount).isdecimal() else "ask for more"
                yield warning("little-memory", f"{path}.{field}.{name}", what, step)
    for name in sorted(set(requests) & set(limits)):
        asked, allowed = str(requests[name]), str(limits[name])
        if is_quantity(asked) and is_quantity(allowed) and quantity(asked) > quantity(allowed):
            what = f"the request {asked} of {name} is above the limit {allowed}"
            yield error("request-above-limit", f"{path}.requests.{name}", what, "ask for less, or raise the limit")


def _sizes_in_memory(spec: dict[str, object]) -> dict[str, str]:
    sources = {str(volume.get("name")): sub(volume, "emptyDir") for volume in maps(spec, "volumes")}
    return {
        name: str(source["sizeLimit"])
        for name, source in sources.items()
        if source.get("medium") == "Memory" and is_quantity(str(source.get("sizeLimit")))
    }


def _in_memory(member: dict[str, object], sizes: Mapping[str, str], path: str) -> Iterator[Finding]:
    written = {str(mount.get("name")) for mount in maps(member, "volumeMounts") if not mount.get("readOnly")}
    names = [name for name in sizes if name in written]
    limit = str(sub(member, "resources", "limits").get("memory"))
    if names and is_quantity(limit) and sum(quantity(sizes[name]) for name in names) >= quantity(limit):
        filled = " and ".join(f"{name} ({sizes[name]})" for name in names)
        what = f"files in {filled} count against the memory limit of {limit} and leave nothing for the program"
        step = "raise the limit above the size of its volumes in memory, or make them smaller"
        yield warning("memory-volumes", f"{path}.limits.memory", what, step)
