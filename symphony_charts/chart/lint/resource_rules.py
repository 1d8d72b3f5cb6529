"""Rules about what containers ask for, which the API server holds against their limits."""

from __future__ import annotations

from collections.abc import Iterator

from symphony_charts.chart.lint.finding import Finding, Objects, pod_of, title
from symphony_charts.formats.data import maps, sub
from symphony_charts.formats.quantity import MIB, is_quantity, quantity

__all__ = ["check_resources"]


def check_resources(objects: Objects) -> Iterator[Finding]:
    """Requests above their limits, of containers and of whole pods, and quantities that are none.

    Source: Kubernetes, pkg/apis/core/validation, ValidateResourceRequirements.
    """
    for item in objects:
        found = pod_of(item)
        if found is None:
            continue
        prefix, pod = found
        spec = sub(pod, "spec")
        where = f"{title(item)}.{prefix}spec"
        for kind in ("initContainers", "containers"):
            for member in maps(spec, kind):
                yield from _resources(sub(member, "resources"), f"{where}.{kind}.{member.get('name')}.resources")
        yield from _resources(sub(spec, "resources"), f"{where}.resources")


def _resources(resources: dict[str, object], path: str) -> Iterator[Finding]:
    requests, limits = sub(resources, "requests"), sub(resources, "limits")
    for field, amounts in (("requests", requests), ("limits", limits)):
        for name, amount in sorted(amounts.items()):
            if not is_quantity(str(amount)):
                yield _error("quantity", f"{path}.{field}.{name}", f'"{amount}" is no quantity of Kubernetes')
            elif name == "memory" and 0 < quantity(str(amount)) < MIB:
                yield Finding(
                    rule="little-memory",
                    severity="warning",
                    path=f"{path}.{field}.{name}",
                    what=f"{amount} of memory are bytes, fewer than any program needs",
                    next=f'say the unit, as in "{amount}Gi"' if str(amount).isdecimal() else "ask for more",
                )
    for name in sorted(set(requests) & set(limits)):
        asked, allowed = str(requests[name]), str(limits[name])
        if is_quantity(asked) and is_quantity(allowed) and quantity(asked) > quantity(allowed):
            what = f"the request {asked} of {name} is above the limit {allowed}"
            yield _error("request-above-limit", f"{path}.requests.{name}", what, "ask for less, or raise the limit")


def _error(rule: str, path: str, what: str, next: str = "") -> Finding:
    return Finding(rule=rule, severity="error", path=path, what=what, next=next)
