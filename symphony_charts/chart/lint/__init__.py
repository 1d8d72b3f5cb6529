"""Everything that can be said about an experiment's chart without helm and without a cluster."""

from __future__ import annotations

from symphony_charts.chart.assemble import Release, assemble
from symphony_charts.chart.lint.chart_rules import check_chart
from symphony_charts.chart.lint.dijob_rules import check_dijob
from symphony_charts.chart.lint.experiment_rules import check_experiment
from symphony_charts.chart.lint.finding import SEVERITIES, Finding, Severity
from symphony_charts.chart.lint.kubernetes import DEFAULT_VERSION, VERSIONS, check_schemas, version_for
from symphony_charts.chart.lint.references import check_references
from symphony_charts.chart.lint.security import check_security
from symphony_charts.chart.lint.value_rules import check_values
from symphony_charts.chart.lint.workload_rules import check_images, check_sizes, check_workloads
from symphony_charts.chart.merge import merge
from symphony_charts.chart.names import fullname
from symphony_charts.chart.package import Chart
from symphony_charts.chart.values import Values
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.opened import opened

__all__ = ["DEFAULT_VERSION", "SEVERITIES", "VERSIONS", "Finding", "Severity", "lint", "lint_objects"]


def lint(
    chart: Chart,
    experiment: Experiment | None = None,
    *,
    overrides: Values | None = None,
    kube_version: str | None = None,
    release: str | None = None,
) -> list[Finding]:
    """All findings about `chart` as `release` would install it with `overrides`, the worst first.

    With the `experiment` that it was made from, what the experiment says beyond its chart is checked too. Without a
    `kube_version` such as ``1.34`` the objects are held against one that has their kinds.
    """
    values = merge(chart.values, overrides or {})
    installed = Release(name=release or chart.name, chart_name=chart.name, chart_version=chart.version)
    objects = opened(assemble(values, installed))
    level = experiment.security.level if experiment is not None else "baseline"
    findings = [
        *((*check_experiment(experiment), *check_dijob(experiment)) if experiment is not None else ()),
        *check_values(values),
        *check_chart(chart.files, known=chart.values),
        *check_schemas(objects, kube_version or version_for(objects)),
        *check_security(objects, level),
        *check_references(objects, fullname(values, installed)),
        *check_workloads(objects),
        *check_images(objects),
        *check_sizes(objects, len(chart.archive)),
    ]
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))


def lint_objects(objects: list[dict[str, object]], *, kube_version: str = DEFAULT_VERSION) -> list[Finding]:
    """The findings about objects alone, wherever they come from."""
    seen = opened(objects)
    return [*check_schemas(seen, kube_version), *check_references(seen, "\0"), *check_workloads(seen)]
