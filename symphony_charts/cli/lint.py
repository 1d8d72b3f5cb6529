"""`symph lint`: everything that can be said about experiments and their charts without a cluster."""

from __future__ import annotations

import argparse
import sys

from symphony_charts.cli import common, output
from symphony_charts.cli.package import add_values, overrides_of, specs_of

__all__ = ["configure", "run"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from symphony_charts.adapters.specfile import SpecFile
    from symphony_charts.chart.lint import Finding
    from symphony_charts.chart.package import Chart

_COLORS = {"error": "bad", "warning": "busy", "info": "dim"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph lint`."""
    common.add_specs(parser)
    common.add_output(parser, ("table", "json", "yaml", "sarif"), headers=False)
    parser.add_argument("--strict", action="store_true", help="fail on warnings too")
    parser.add_argument("--quiet", action="store_true", help="leave out what is merely worth knowing")
    parser.add_argument("--kube-version", metavar="1.NN", default=None, help="Kubernetes to check for (default: 1.34)")
    parser.add_argument("--helm", action="store_true", help="ask the helm on this machine as well")
    add_values(parser)
    common.add_examples(
        parser,
        "symph lint experiment.yaml",
        "symph lint experiments/*.yaml --strict",
        "symph lint experiment.yaml -o sarif > findings.sarif",
    )


def run(args: argparse.Namespace) -> int:
    """Print the findings; the status is 1 when one is an error, or with `--strict` a warning."""
    from symphony_charts.chart.lint import DEFAULT_VERSION, lint
    from symphony_charts.cluster.packaging import template

    filled, overrides = template(), overrides_of(args)
    found: list[tuple[str, Finding]] = []
    specs = specs_of(args.specs)
    with output.progress("linting", len(specs)) as advance:
        for path in specs:
            spec, chart = _chart(path, filled)
            version = args.kube_version or DEFAULT_VERSION
            findings = lint(chart, spec.experiment, overrides=overrides, kube_version=version)
            findings += _by_helm(chart) if args.helm else []
            found += [(str(path), finding) for finding in findings if not (args.quiet and finding.severity == "info")]
            advance(1)
    _print(args, found, len(specs))
    bad = ("error", "warning") if args.strict else ("error",)
    return int(any(finding.severity in bad for _, finding in found))


def _chart(path: str, filled: object) -> tuple[SpecFile, Chart]:
    from symphony_charts.adapters import specfile
    from symphony_charts.chart.package import ChartTemplate, build_chart
    from symphony_charts.cluster.pools import place
    from symphony_charts.network.services import allocate

    assert isinstance(filled, ChartTemplate)  # noqa: S101 - narrows what `run` made
    # Whether it fits is for `plan` and `package` to say; the objects are looked at either way.
    spec, _ = place(specfile.read(path), force=True)
    services = allocate(spec.experiment, spec.pins)
    return spec, build_chart(spec.experiment, services, spec.lock.version or "0.1.0", filled)


def _by_helm(chart: Chart) -> list[Finding]:
    from symphony_charts.adapters.helm import lint_chart
    from symphony_charts.chart.lint import Finding

    ended = lint_chart(chart.name, chart.files)
    if ended.status == 0:
        return []
    said = [line for line in ended.text.splitlines() if line.startswith(("[ERROR]", "[WARNING]"))]
    texts = said or [ended.error_text.strip()]
    return [Finding(rule="helm", severity="error", path="chart", what=text) for text in texts]


def _print(args: argparse.Namespace, found: list[tuple[str, Finding]], checked: int) -> None:
    if args.output == "sarif":
        _print_sarif(found)
        return
    records: list[dict[str, object]] = [
        {
            "file": file,
            "rule": finding.rule,
            "severity": finding.severity,
            "path": finding.path,
            "what": finding.what,
            "next": finding.next,
        }
        for file, finding in found
    ]
    if args.output in ("json", "yaml"):
        output.print_items(args, "Finding", records, ())
        return
    color = output.use_color(sys.stdout, getattr(args, "color", None))
    for record in records:
        severity = str(record["severity"])
        output.line(f"{output.paint(severity, _COLORS[severity], color)}: {record['what']}  [{record['rule']}]")
        output.line(f"  at:   {record['file']}, {record['path']}")
        if record["next"]:
            output.line(f"  next: {record['next']}")
    counts = [f"{sum(1 for r in records if r['severity'] == s)} {s}" for s in ("error", "warning", "info")]
    output.note(f"{checked} checked: {', '.join(counts)}")


def _print_sarif(found: list[tuple[str, Finding]]) -> None:
    import json
    from pathlib import Path

    from symphony_charts import __version__
    from symphony_charts.chart.lint.sarif import to_sarif
    from symphony_charts.spec.yaml_text import line_of

    texts: dict[str, str] = {}

    def line(file: str, path: str) -> int | None:
        if file.endswith(".py"):
            return None
        text = texts.setdefault(file, Path(file).read_text(encoding="utf-8"))
        return line_of(text, path) if path else None

    output.line(json.dumps(to_sarif(found, __version__, line), indent=2))
