"""`symph validate` and `symph render`: check charts, and print their objects."""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Sequence
from pathlib import Path

from symphony_charts import package, prepare
from symphony_charts.chart import files as chart_files
from symphony_charts.chart import lint
from symphony_charts.cli import options, output, reports
from symphony_charts.cli import specs as cli_specs
from symphony_charts.formats import data, yaml_read, yaml_write
from symphony_charts.kubernetes.releases import helm_client
from symphony_charts.spec import files


def configure_validate(parser: argparse.ArgumentParser) -> None:
    options.add_specs(parser)
    options.add_output(parser, options.FINDING_FORMATS, headers=False)
    options.add_flag(parser, "--strict", help="fail on warnings too")
    parser.add_argument(
        "--kube-version", metavar="1.NN", help="Kubernetes to check for (default: 1.34, or one that has all kinds)"
    )
    options.add_flag(parser, "--helm", help="also check with this machine's helm")
    options.add_values(parser)
    options.add_placement(parser)
    options.add_examples(
        parser,
        "symph validate experiment.yaml",
        "symph validate experiments/*.yaml --strict",
        "symph validate experiment.yaml -o sarif > findings.sarif",
    )


def run_validate(args: argparse.Namespace) -> int:
    """Print the findings and return the exit status: 1 if one is an error, or with `--strict` a warning."""
    filled = package.template()
    problems: list[tuple[str, lint.Finding]] = []
    specs = cli_specs.specs_of(args.specs)
    with output.progress("linting", len(specs)) as advance:
        for path in specs:
            of_spec = _findings(args, path, filled)
            problems += [(str(path), finding) for finding in of_spec if not (args.quiet and finding.severity == "info")]
            advance(1)
    return reports.print_findings(args, problems, f"{len(specs)} checked", _line_of)


def _findings(args: argparse.Namespace, path: str, filled: chart_files.ChartTemplate) -> list[lint.Finding]:
    spec = files.read(path, args.spec_set)
    prepared = cli_specs.prepared_of(args, spec, force=True)
    chart = prepared.chart(filled, spec.lock.version)
    verdict = prepare.judge(spec, prepared, chart, is_forced=args.force_unschedulable, kube_version=args.kube_version)
    return [*verdict.findings, *(_by_helm(chart) if args.helm else [])]


def _by_helm(chart: chart_files.Chart) -> list[lint.Finding]:
    ended = helm_client.lint_chart(chart.name, chart.files)
    if ended.status == 0:
        return []
    complaints = [line for line in ended.text.splitlines() if line.startswith(("[ERROR]", "[WARNING]"))]
    texts = complaints or [ended.error_text.strip()]
    return [lint.Finding(rule="helm", severity="error", path="chart", what=text) for text in texts]


@functools.cache
def _text_of(file: str) -> str:
    return Path(file).read_text(encoding="utf-8")


def _line_of(file: str, path: str) -> int | None:
    return yaml_read.line_of(_text_of(file), path) if path and not file.endswith(".py") else None


def configure_render(parser: argparse.ArgumentParser) -> None:
    options.add_specs(parser, many=False)
    options.add_output(parser, ("yaml", "json", "name"), default="yaml", headers=False)
    options.add_release(parser)
    parser.add_argument("-n", "--namespace", default="default", help="its namespace, for --helm (default: default)")
    options.add_flag(parser, "--no-tests", help="leave out the pod that `helm test` starts")
    options.add_flag(parser, "--helm", help="render the chart with this machine's helm")
    options.add_values(parser)
    options.add_examples(
        parser,
        "symph render experiment.yaml",
        "symph render experiment.yaml --set groups.agent.replicas=32 -o name",
        "symph render experiment.yaml --spec-set workload.kind=jobset",
        "symph render experiment.yaml | kubectl apply --server-side --dry-run=server -f -",
    )


def run_render(args: argparse.Namespace) -> int:
    spec = files.read(args.spec, args.spec_set)
    # `plan` and `package` check the fit; the objects are the same either way.
    prepared = cli_specs.prepared_of(args, spec, force=True)
    there = prepared.under({}, release=args.release or "", namespace=args.namespace, is_draft=False)
    objects = list(there.objects)
    if args.helm:
        chart, release = prepared.chart(package.template(), spec.lock.version), args.release
        objects = helm_client.template_chart(
            chart.name, chart.files, release or chart.name, namespace=args.namespace, values={}
        )
    if args.no_tests:
        objects = [item for item in objects if not is_test(item)]
    print_objects(args, objects)
    return 0


def is_test(item: dict[str, object]) -> bool:
    return data.sub(item, "metadata", "annotations").get("helm.sh/hook") == "test"


def list_of(objects: Sequence[dict[str, object]]) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "List", "items": list(objects)}


def print_objects(args: argparse.Namespace, objects: Sequence[dict[str, object]]) -> None:
    if args.output == "name":
        for item in objects:
            output.line(f"{str(item['kind']).lower()}/{data.sub(item, 'metadata').get('name', '')}")
    elif args.output == "json":
        output.print_document(list_of(objects), "json")
    else:
        sys.stdout.write(yaml_write.dump_all(objects))
