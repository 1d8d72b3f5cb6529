"""`symph validate` and `symph render`: check charts, and print their objects."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from symphony_charts.chart.files.chart import Chart, ChartTemplate
from symphony_charts.chart.lint.finding import Finding
from symphony_charts.chart.lint.sarif import to_sarif
from symphony_charts.cli import options, output
from symphony_charts.cli.options import add_values
from symphony_charts.cli.specs import prepared_of, specs_of
from symphony_charts.formats.data import sub
from symphony_charts.formats.yaml_text import line_of
from symphony_charts.formats.yaml_write import dump_all
from symphony_charts.gate import Verdict, judge
from symphony_charts.kubernetes.releases.helm_program import lint_chart, template_chart
from symphony_charts.package import template
from symphony_charts.spec import files
from symphony_charts.version import __version__


def configure_validate(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph validate`."""
    options.add_specs(parser)
    options.add_output(parser, options.FINDING_FORMATS, headers=False)
    parser.add_argument("--strict", action="store_true", help="fail on warnings too")
    parser.add_argument(
        "--kube-version",
        metavar="1.NN",
        default=None,
        help="Kubernetes to check for (default: 1.34, or one that has all kinds)",
    )
    parser.add_argument("--helm", action="store_true", help="ask the helm on this machine as well")
    add_values(parser)
    options.add_placement(parser)
    options.add_examples(
        parser,
        "symph validate experiment.yaml",
        "symph validate experiments/*.yaml --strict",
        "symph validate experiment.yaml -o sarif > findings.sarif",
    )


_COLORS = {"error": "bad", "warning": "busy", "info": "dim"}


def print_findings(
    args: argparse.Namespace,
    findings: Sequence[tuple[str, Finding]],
    what: str,
    line: Callable[[str, str], int | None] = lambda _file, _path: None,
) -> int:
    """Print findings with their files in the format of `-o`, then counts after `what`; `line` is for SARIF.

    Return the exit status: 1 if one is an error, or with `--strict` a warning.
    """
    bad = ("error", "warning") if args.strict else ("error",)
    status = int(any(finding.severity in bad for _, finding in findings))
    if args.output == "sarif":
        output.line(json.dumps(to_sarif(list(findings), __version__, line), indent=2))
        return status
    records: list[dict[str, object]] = [
        {
            "file": file,
            "rule": finding.rule,
            "severity": finding.severity,
            "path": finding.path,
            "what": finding.what,
            "next": finding.next,
        }
        for file, finding in findings
    ]
    if args.output in ("json", "yaml"):
        output.print_items(args, "Finding", records, ())
        return status
    color = output.use_color(sys.stdout, getattr(args, "color", None))
    for record in records:
        severity = str(record["severity"])
        output.line(f"{output.paint(severity, _COLORS[severity], color)}: {record['what']}  [{record['rule']}]")
        where = ", ".join(str(record[key]) for key in ("file", "path") if record[key])
        if where:
            output.line(f"  at:   {where}")
        if record["next"]:
            output.line(f"  next: {record['next']}")
    counts = [f"{sum(1 for r in records if r['severity'] == s)} {s}" for s in ("error", "warning", "info")]
    output.note(f"{what}: {', '.join(counts)}")
    return status


def note_warnings(verdicts: Sequence[Verdict]) -> None:
    """Print the number of warnings to stderr, and the command that shows them."""
    found = [verdict for verdict in verdicts if verdict.warnings]
    if found:
        count = output.counted(sum(verdict.warnings for verdict in found), "warning")
        specs = found[0].path if len(found) == 1 else f"SPEC ({len(found)} of {len(verdicts)} specs)"
        output.note(f"{count}: symph validate {specs}")


def run_validate(args: argparse.Namespace) -> int:
    """Print the findings and return the exit status: 1 if one is an error, or with `--strict` a warning."""
    filled = template()
    problems: list[tuple[str, Finding]] = []
    specs = specs_of(args.specs)
    with output.progress("linting", len(specs)) as advance:
        for path in specs:
            of_spec = _findings(args, path, filled)
            problems += [(str(path), finding) for finding in of_spec if not (args.quiet and finding.severity == "info")]
            advance(1)
    return print_findings(args, problems, f"{len(specs)} checked", _line_finder())


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


def configure_render(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph render`."""
    options.add_specs(parser, many=False)
    options.add_output(parser, ("yaml", "json", "name"), default="yaml", headers=False)
    parser.add_argument("--release", metavar="NAME", default=None, help="the release (default: the experiment's name)")
    parser.add_argument("-n", "--namespace", default="default", help="its namespace, for --helm (default: default)")
    parser.add_argument("--no-tests", action="store_true", help="leave out the pod that `helm test` starts")
    parser.add_argument("--helm", action="store_true", help="let the helm on this machine render the chart")
    add_values(parser)
    options.add_examples(
        parser,
        "symph render experiment.yaml",
        "symph render experiment.yaml --set groups.agent.replicas=32 -o name",
        "symph render experiment.yaml --spec-set workload.kind=jobset",
        "symph render experiment.yaml | kubectl apply --server-side --dry-run=server -f -",
    )


def run_render(args: argparse.Namespace) -> int:
    """Print the objects: natively, or as real helm renders them."""
    spec = files.read(args.spec, args.spec_set)
    # Whether it fits is for `plan` and `package` to say; the objects are the same either way.
    prepared = prepared_of(args, spec, force=True)
    there = prepared.under({}, release=args.release or "", namespace=args.namespace, is_draft=False)
    objects = list(there.objects)
    if args.helm:
        objects = _rendered_by_helm(args, prepared.chart(template(), spec.lock.version))
    if args.no_tests:
        objects = [item for item in objects if not is_test(item)]
    print_objects(args, objects)
    return 0


def _rendered_by_helm(args: argparse.Namespace, chart: Chart) -> list[dict[str, object]]:
    return template_chart(chart.name, chart.files, args.release or chart.name, namespace=args.namespace, values={})


def is_test(item: dict[str, object]) -> bool:
    """Return True if `item` is an object of `helm test`."""
    return sub(item, "metadata", "annotations").get("helm.sh/hook") == "test"


def print_objects(args: argparse.Namespace, objects: list[dict[str, object]]) -> None:
    """Print `objects` in the format `args.output`: yaml, json or name."""
    if args.output == "name":
        for item in objects:
            metadata = item["metadata"]
            name = metadata["name"] if isinstance(metadata, dict) else ""
            output.line(f"{str(item['kind']).lower()}/{name}")
    elif args.output == "json":
        sys.stdout.write(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}, indent=2) + "\n")
    else:
        sys.stdout.write(dump_all(objects))
