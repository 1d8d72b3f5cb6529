"""Rules about values: names in them that must mean something."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from symphony_charts.chart.lint.finding import Finding
from symphony_charts.chart.render.values import Values
from symphony_charts.formats.data import maps, sub

__all__ = ["check_values"]


def check_values(values: Values) -> Iterator[Finding]:
    """Services whose listener is gone, probes of services that are not there, connections to nobody."""
    services, groups = sub(values, "services"), sub(values, "groups")
    for name in sorted(services):
        group, process = sub(services, name).get("group"), sub(services, name).get("process")
        if process not in sub(groups, str(group), "containers"):
            what = f"nobody listens: there is no container {group}/{process}"
            yield Finding(rule="no-listener", severity="warning", path=f"services.{name}", what=what)
    for group in sorted(groups):
        for process, container in sorted(sub(groups, group, "containers").items()):
            path = f"groups.{group}.containers.{process}"
            yield from _container(container, path, set(services))


def _container(container: object, path: str, services: set[str]) -> Iterator[Finding]:
    known = services | {str(port.get("name")) for port in maps(sub(container, "overlay"), "ports")}
    for probe, kind in product(("livenessProbe", "readinessProbe", "startupProbe"), ("tcpSocket", "httpGet")):
        port = sub(container, probe, kind).get("port")
        if isinstance(port, str) and not port.isdigit() and port not in known:
            what = f'no service "{port}", so the process has no such probe'
            yield Finding(rule="probe-service", severity="warning", path=f"{path}.{probe}", what=what)
    connects = container.get("connects") if isinstance(container, dict) else None
    for name in connects if isinstance(connects, list) else []:
        if name not in services:
            what = f'connects to "{name}", which is no service of the chart'
            yield Finding(rule="connects", severity="warning", path=f"{path}.connects", what=what)
