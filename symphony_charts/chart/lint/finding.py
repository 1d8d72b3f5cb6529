"""Findings, helpers for all rules, and the SARIF 2.1.0 output that code hosts show beside lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from symphony_charts.chart.build.chart import BuiltChart
from symphony_charts.chart.build.draft import Group
from symphony_charts.formats.data import maps, sub
from symphony_charts.kinds.registry import kind_for

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
Objects = Sequence[dict[str, object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A fault or warning: `rule` is its id, `path` a place in values, spec or an object, `next` the next step."""

    rule: str
    severity: Severity
    path: str
    what: str
    next: str = ""


def title(item: dict[str, object]) -> str:
    """Return kind and name, such as ``Job/rl-agent-1a2b3c4d``."""
    return f"{item.get('kind')}/{sub(item, 'metadata').get('name')}"


def pod_of(item: dict[str, object]) -> tuple[str, dict[str, object]] | None:
    """Return the path of the pod (``metadata`` and ``spec``) inside an object, and the pod itself."""
    if item.get("kind") == "Pod":
        return "", item
    kind = kind_for(item)
    if kind is not None and not kind.holds_groups:
        return "spec.template.", sub(item, "spec", "template")
    return None


def pods_in(objects: Objects) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield the path and the pod of each object that has one; a path ends with a dot."""
    for item in objects:
        if (found := pod_of(item)) is not None:
            yield f"{title(item)}.{found[0]}", found[1]


def containers_of(spec: dict[str, object]) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield each init container and container of a pod's `spec`, with its path in the pod."""
    for kind in ("initContainers", "containers"):
        yield from ((f"spec.{kind}.{member.get('name')}", member) for member in maps(spec, kind))


def containers_in(objects: Objects) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield the path of each container and init container, and the container itself."""
    for path, pod in pods_in(objects):
        yield from ((f"{path}{where}", member) for where, member in containers_of(sub(pod, "spec")))


def running(chart: BuiltChart, values: Mapping[str, Any]) -> list[Group]:
    """Return the groups that have replicas in a release with complete `values`."""
    return [group for name, group in chart.draft.groups.items() if int(values["groups"][name]["replicas"])]


def _finding(severity: Severity, rule: str, path: str, what: str, next: str = "") -> Finding:
    return Finding(rule=rule, severity=severity, path=path, what=what, next=next)


error, warning, info = (partial(_finding, severity) for severity in SEVERITIES)

_LEVELS = {"error": "error", "warning": "warning", "info": "note"}


def to_sarif(
    findings: Iterable[tuple[str, Finding]], version: str, line_of: Callable[[str, str], int | None]
) -> dict[str, object]:
    """Return the SARIF log of findings, each with its file; `line_of` returns the line of a path in a file."""
    results: list[dict[str, object]] = []
    rules: set[str] = set()
    for file, finding in findings:
        rules.add(finding.rule)
        text = finding.what + (f"; {finding.next}" if finding.next else "")
        location: dict[str, object] = {"artifactLocation": {"uri": file}}
        line = line_of(file, finding.path)
        if line is not None:
            location["region"] = {"startLine": line}
        results.append(
            {
                "ruleId": finding.rule,
                "level": _LEVELS[finding.severity],
                "message": {"text": f"{finding.path}: {text}" if finding.path else text},
                "locations": [{"physicalLocation": location}],
            }
        )
    driver = {"name": "symph validate", "version": version, "rules": [{"id": rule} for rule in sorted(rules)]}
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
