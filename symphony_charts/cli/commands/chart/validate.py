"""`symph validate`: check experiments and their charts without a cluster."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from symphony_charts.chart.files.chart import Chart, ChartTemplate
from symphony_charts.chart.lint.finding import Finding
from symphony_charts.cli import findings, output
from symphony_charts.cli.specs import specs_of
from symphony_charts.cli.values import prepared_of
from symphony_charts.formats.yaml_text import line_of
from symphony_charts.gate import judge
from symphony_charts.kubernetes.releases.helm_program import lint_chart
from symphony_charts.package import template
from symphony_charts.spec import files

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Print the findings and return the exit status: 1 if one is an error, or with `--strict` a warning."""
    filled = template()
    problems: list[tuple[str, Finding]] = []
    specs = specs_of(args.specs)
    with output.progress("linting", len(specs)) as advance:
        for path in specs:
            of_spec = _findings(args, path, filled)
            problems += [(str(path), finding) for finding in of_spec if not (args.quiet and finding.severity == "info")]
            advance(1)
    return findings.print_findings(args, problems, f"{len(specs)} checked", _line_finder())


def _findings(args: argparse.Namespace, path: str, filled: ChartTemplate) -> list[Finding]:
    spec = files.read(path, args.spec_set)
    prepared = prepared_of(args, spec, force=True)
    chart = prepared.chart(filled, spec.lock.version)
    verdict = judge(spec, prepared, chart, is_forced=args.force_unschedulable, kube_version=args.kube_version)
    return [*verdict.findings, *(_by_helm(chart) if args.helm else [])]


def _by_helm(chart: Chart) -> list[Finding]:
    ended = lint_chart(chart.name, chart.files)
    if ended.status == 0:
        return []
    complaints = [line for line in ended.text.splitlines() if line.startswith(("[ERROR]", "[WARNING]"))]
    texts = complaints or [ended.error_text.strip()]
    return [Finding(rule="helm", severity="error", path="chart", what=text) for text in texts]


def _line_finder() -> Callable[[str, str], int | None]:
    """Return a function that finds the line of a path in a spec file. It reads each file once, when it needs it."""
    texts: dict[str, str] = {}

    def line(file: str, path: str) -> int | None:
        if file.endswith(".py"):
            return None
        text = texts.setdefault(file, Path(file).read_text(encoding="utf-8"))
        return line_of(text, path) if path else None

    return line
