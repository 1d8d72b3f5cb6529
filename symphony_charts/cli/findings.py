"""Findings of `symph lint` and `symph gitops lint`, as text, data or SARIF."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence

from symphony_charts.chart.lint.finding import Finding
from symphony_charts.chart.lint.sarif import to_sarif
from symphony_charts.cli import output
from symphony_charts.version import __version__

__all__ = ["print_found"]

_COLORS = {"error": "bad", "warning": "busy", "info": "dim"}


def print_found(
    args: argparse.Namespace,
    found: Sequence[tuple[str, Finding]],
    what: str,
    line: Callable[[str, str], int | None] = lambda _file, _path: None,
) -> None:
    """Print findings, each with its file, as `-o` says, then how many there are of `what`; `line` is for SARIF."""
    if args.output == "sarif":
        output.line(json.dumps(to_sarif(list(found), __version__, line), indent=2))
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
        where = ", ".join(str(record[key]) for key in ("file", "path") if record[key])
        if where:
            output.line(f"  at:   {where}")
        if record["next"]:
            output.line(f"  next: {record['next']}")
    counts = [f"{sum(1 for r in records if r['severity'] == s)} {s}" for s in ("error", "warning", "info")]
    output.note(f"{what}: {', '.join(counts)}")
