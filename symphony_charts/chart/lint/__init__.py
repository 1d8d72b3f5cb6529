"""Checks of a chart and its release that need neither helm nor a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from symphony_charts.chart.build.chart import BuiltChart
from symphony_charts.chart.files import Chart
from symphony_charts.chart.lint.finding import SEVERITIES, Finding, Severity, error, to_sarif
from symphony_charts.chart.lint.kubernetes import check_schemas, version_for
from symphony_charts.chart.lint.release_rules import check_release, check_unread
from symphony_charts.chart.lint.security import check_rights, check_security
from symphony_charts.chart.lint.workload_rules import (
    check_commands,
    check_images,
    check_ports,
    check_references,
    check_resources,
    check_sizes,
    check_workloads,
)
from symphony_charts.kinds.registry import opened

__all__ = ["SEVERITIES", "Finding", "Severity", "lint_release", "to_sarif"]


def lint_release(
    files: Chart,
    chart: BuiltChart,
    values: Mapping[str, Any],
    objects: Sequence[dict[str, object]],
    *,
    kube_version: str | None = None,
) -> list[Finding]:
    """Return all findings about a release of `chart` with complete `values`, the worst first.

    `files` are those of the chart, `objects` those of the release. Without a `kube_version` such as ``1.34``, choose a
    version that has all kinds of the objects.
    """
    seen = opened(objects)
    findings = [
        *check_release(chart, values),
        *check_unread(chart, values),
        *_check_names(files.files),
        *check_schemas(seen, kube_version or version_for(seen)),
        *check_resources(seen),
        *check_security(seen, chart.experiment.security.level),
        *check_rights(objects),
        *check_references(seen),
        *check_workloads(seen),
        *check_images(seen),
        *check_commands(seen),
        *check_ports(seen),
        *check_sizes(seen, len(files.archive)),
    ]
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))


def _check_names(files: Mapping[str, bytes]) -> Iterator[Finding]:
    for path in sorted(files):
        if path.startswith("templates/") and not path.endswith((".yaml", ".yml", ".tpl", ".txt")):
            yield error("chart-templates", path, "helm reads .yaml, .yml, .tpl and .txt in this folder")
