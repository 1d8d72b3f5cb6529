"""`symph validate` and `symph render`: check charts and print their objects; findings of any check."""

from __future__ import annotations

import argparse
import functools
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from symphony_charts import package, prepare, version
from symphony_charts.chart import files as chart_files
from symphony_charts.chart import lint
from symphony_charts.cli import options, output
from symphony_charts.cli import specs as cli_specs
from symphony_charts.formats import data, yaml_read, yaml_write
from symphony_charts.kubernetes.releases import helm_client
from symphony_charts.spec import files

LATE = (helm_client,)  # only --helm needs it


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
            problems += [(path, found) for found in of_spec if not (args.quiet and found.severity == "info")]
            advance(1)
    return print_findings(args, problems, f"{len(specs)} checked", _line_of)


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
    """Return the line of a finding; None in a script, and in a spec from stdin, which cannot be read again."""
    return yaml_read.line_of(_text_of(file), path) if path and file != "-" and not file.endswith(".py") else None


# What holds of nearly every spec.
_ONLY_VERBOSE = ("pod-security-restricted",)
_SEVERITY_COLORS = {"error": "bad", "warning": "busy", "info": "dim"}


def print_findings(
    args: argparse.Namespace,
    findings: Sequence[tuple[str, lint.Finding]],
    what: str,
    line: Callable[[str, str], int | None] = lambda _file, _path: None,
) -> int:
    """Print findings with their files in the format of `-o`, then counts after `what`; `line` is for SARIF.

    Return the exit status: 1 if one is an error, or with `--strict` a warning.
    """
    bad = ("error", "warning") if args.strict else ("error",)
    status = int(any(found.severity in bad for _, found in findings))
    if args.output == "sarif":
        output.line(json.dumps(lint.to_sarif(list(findings), version.__version__, line), indent=2))
        return status
    records: list[dict[str, object]] = [{"file": file, **asdict(found)} for file, found in findings]
    if args.output in ("json", "yaml"):
        output.print_items(args, "Finding", records, ())
        return status
    shown = [record for record in records if args.verbose or record["rule"] not in _ONLY_VERBOSE]
    for record in shown:
        severity = str(record["severity"])
        output.line(f"{output.paint(severity, _SEVERITY_COLORS[severity])}: {record['what']}  [{record['rule']}]")
        where = ", ".join(str(record[key]) for key in ("file", "path") if record[key])
        if where:
            output.line(f"  at:   {where}")
        if record["next"]:
            output.line(f"  next: {record['next']}")
    counts = [f"{sum(1 for r in records if r['severity'] == s)} {s}" for s in ("error", "warning", "info")]
    more = f" ({len(records) - len(shown)} not shown: -v)" if len(shown) < len(records) else ""
    output.note(f"{what}: {', '.join(counts)}{more}")
    return status


def note_warnings(verdicts: Sequence[prepare.Verdict]) -> None:
    found = [verdict for verdict in verdicts if verdict.warnings]
    if found:
        count = output.counted(sum(verdict.warnings for verdict in found), "warning")
        specs = found[0].path if len(found) == 1 else f"SPEC ({len(found)} of {len(verdicts)} specs)"
        output.note(f"{count}: symph validate {specs}")


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
