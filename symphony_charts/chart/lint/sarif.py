"""Findings as SARIF 2.1.0, which code hosts show beside the lines of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from symphony_charts.chart.lint.finding import Finding

_LEVELS = {"error": "error", "warning": "warning", "info": "note"}


def to_sarif(
    findings: Iterable[tuple[str, Finding]], version: str, line_of: Callable[[str, str], int | None]
) -> dict[str, object]:
    """Return the log of findings, each with its file; `line_of` returns the line of a path in a file."""
    results: list[dict[str, object]] = []
    rules: dict[str, None] = {}
    for file, finding in findings:
        rules[finding.rule] = None
        text = finding.what + (f"; {finding.next}" if finding.next else "")
        location: dict[str, object] = {"artifactLocation": {"uri": file}}
        line = line_of(file, finding.path)
        if line is not None:
            location["region"] = {"startLine": line}
        results.append(
            {
                "ruleId": finding.rule,
                "level": _LEVELS[finding.severity],
                "message": {"text": f"{finding.path}: {text}" if finding.path else text},
                "locations": [{"physicalLocation": location}],
            }
        )
    driver = {"name": "symph validate", "version": version, "rules": [{"id": rule} for rule in sorted(rules)]}
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
