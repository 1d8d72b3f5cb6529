"""A finding, and helpers that all rules share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from symphony_charts.chart.build.chart import BuiltChart
from symphony_charts.chart.build.draft import Group
from symphony_charts.formats.data import sub
from symphony_charts.kinds.registry import kind_for

__all__ = ["SEVERITIES", "Finding", "Objects", "Severity", "pod_of", "running", "title", "warning"]

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
Objects = Sequence[dict[str, object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One fault or doubt: `rule` is its id, `path` a place in values, spec or an object, `next` what to do."""

    rule: str
    severity: Severity
    path: str
    what: str
    next: str = ""


def title(item: dict[str, object]) -> str:
    """``Job/rl-agent-1a2b3c4d``."""
    return f"{item.get('kind')}/{sub(item, 'metadata').get('name')}"


def pod_of(item: dict[str, object]) -> tuple[str, dict[str, object]] | None:
    """The path of the pod (``metadata`` and ``spec``) inside an object, and the pod itself."""
    if item.get("kind") == "Pod":
        return "", item
    kind = kind_for(item)
    if kind is not None and not kind.holds_groups:
        return "spec.template.", sub(item, "spec", "template")
    return None


def running(chart: BuiltChart, values: Mapping[str, Any]) -> list[Group]:
    """Return the groups that have replicas in a release with complete `values`."""
    return [group for name, group in chart.draft.groups.items() if int(values["groups"][name]["replicas"])]


def warning(rule: str, path: str, what: str, next: str) -> Finding:
    """Return a warning."""
    return Finding(rule=rule, severity="warning", path=path, what=what, next=next)
