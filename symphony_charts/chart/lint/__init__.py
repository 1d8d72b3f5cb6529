"""Everything that can be said about a chart and its release without helm and without a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from symphony_charts.chart.files.chart import Chart
from symphony_charts.chart.lint.chart_rules import check_chart
from symphony_charts.chart.lint.finding import SEVERITIES, Finding, Severity
from symphony_charts.chart.lint.kubernetes import DEFAULT_VERSION, VERSIONS, check_schemas, version_for
from symphony_charts.chart.lint.references import check_references
from symphony_charts.chart.lint.release_rules import check_release, promised_level
from symphony_charts.chart.lint.resource_rules import check_resources
from symphony_charts.chart.lint.security import check_security
from symphony_charts.chart.lint.unread_rules import check_unread
from symphony_charts.chart.lint.value_rules import check_values
from symphony_charts.chart.lint.workload_rules import check_commands, check_images, check_sizes, check_workloads
from symphony_charts.chart.render.model import Model
from symphony_charts.chart.render.release import Release, render_release
from symphony_charts.chart.render.values import Values
from symphony_charts.chart.values.merge import merge
from symphony_charts.kinds.children import opened

__all__ = ["DEFAULT_VERSION", "SEVERITIES", "VERSIONS", "Finding", "Severity", "lint", "lint_objects", "lint_release"]


def lint(
    chart: Chart, *, overrides: Values | None = None, kube_version: str | None = None, release: str | None = None
) -> list[Finding]:
    """All findings about `chart` as `release` would install it with `overrides`, the worst first.

    Without a `kube_version` such as ``1.34`` the objects are held against one that has their kinds. Raises SpecError
    for values that helm would refuse.
    """
    values = merge(chart.values, overrides or {})
    installed = Release(name=release or chart.name, chart_name=chart.name, chart_version=chart.version, is_draft=True)
    return lint_release(chart, values, *render_release(values, installed), kube_version=kube_version)


def lint_release(
    chart: Chart,
    values: Mapping[str, object],
    model: Model,
    objects: Sequence[dict[str, object]],
    *,
    kube_version: str | None = None,
) -> list[Finding]:
    """The same for merged `values` whose `objects` are rendered already from `model`."""
    seen = opened(objects)
    findings = [
        *check_release(model),
        *check_unread(model),
        *check_values(dict(values)),
        *check_chart(chart.files, known=chart.values),
        *check_schemas(seen, kube_version or version_for(seen)),
        *check_resources(seen),
        *check_security(seen, promised_level(values)),
        *check_references(seen, model.fullname),
        *check_workloads(seen),
        *check_images(seen),
        *check_commands(seen),
        *check_sizes(seen, len(chart.archive)),
    ]
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))


def lint_objects(objects: list[dict[str, object]], *, kube_version: str = DEFAULT_VERSION) -> list[Finding]:
    """The findings about objects alone, wherever they come from."""
    seen = opened(objects)
    return [
        *check_schemas(seen, kube_version),
        *check_resources(seen),
        *check_references(seen, "\0"),
        *check_workloads(seen),
    ]
