"""Print findings for people and programs: text, data, SARIF."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict

from symphony_charts.chart.lint.finding import Finding, to_sarif
from symphony_charts.cli import output
from symphony_charts.prepare import Verdict
from symphony_charts.version import __version__

# What holds of nearly every spec.
_ONLY_VERBOSE = ("pod-security-restricted",)
_SEVERITY_COLORS = {"error": "bad", "warning": "busy", "info": "dim"}


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
    records: list[dict[str, object]] = [{"file": file, **asdict(finding)} for file, finding in findings]
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


def note_warnings(verdicts: Sequence[Verdict]) -> None:
    found = [verdict for verdict in verdicts if verdict.warnings]
    if found:
        count = output.counted(sum(verdict.warnings for verdict in found), "warning")
        specs = found[0].path if len(found) == 1 else f"SPEC ({len(found)} of {len(verdicts)} specs)"
        output.note(f"{count}: symph validate {specs}")
