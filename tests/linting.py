"""Lint a chart or objects as `symph validate` lints a release."""

from __future__ import annotations

from collections.abc import Mapping

from symphony_charts.chart.build.chart import Release
from symphony_charts.chart.files import Chart
from symphony_charts.chart.lint import Finding, lint_release
from symphony_charts.chart.lint.kubernetes import DEFAULT_VERSION, check_schemas
from symphony_charts.chart.lint.workload_rules import check_references, check_resources, check_workloads
from symphony_charts.chart.release import merge_values, open_chart, render_release
from symphony_charts.chart.schema import ValuesSchema
from symphony_charts.kinds.registry import opened


def lint(
    chart: Chart,
    *,
    overrides: Mapping[str, object] | None = None,
    kube_version: str | None = None,
    release: str | None = None,
) -> list[Finding]:
    """Return all findings about `chart` as `release` would install it with `overrides`."""
    built = open_chart(chart.files, chart.name)
    values = merge_values(ValuesSchema(built), overrides or {})
    installed = Release(name=release or chart.name, version=chart.version, is_draft=True)
    return lint_release(chart, built, values, render_release(built, values, installed), kube_version=kube_version)


def lint_objects(objects: list[dict[str, object]]) -> list[Finding]:
    seen = opened(objects)
    return [
        *check_schemas(seen, DEFAULT_VERSION),
        *check_resources(seen),
        *check_references(seen),
        *check_workloads(seen),
    ]
