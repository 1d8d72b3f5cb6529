"""What makes Argo CD slow: `symph gitops doctor` beyond the rules of `lint`.

Source: argoproj/argo-cd, docs/operator-manual/high_availability.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from symphony_charts.chart.lint.finding import Finding
from symphony_charts.gitops import layout
from symphony_charts.gitops.lint.repository import published_charts

__all__ = ["size_findings"]

_MANY_APPS, _MANY_FILES, _MANY_REFS = 2_000, 120_000, 5_000


def size_findings(files: Mapping[str, bytes], refs: int | None) -> Iterator[Finding]:
    """How large the repository is, and what to do where that hurts. `refs` is None where it is unknown."""
    pointers = sum(1 for path in files if path.endswith(layout.POINTER_SUFFIX))
    charts = len(published_charts(files))
    counted = f"{pointers} applications, {charts} chart versions, {len(files)} files"
    yield _said("size", "info", counted if refs is None else f"{counted}, {refs} refs", "")
    if pointers > _MANY_APPS:
        yield _said(
            "many-applications",
            "warning",
            f"{pointers} applications in one repository are slow to reconcile",
            "a repository for each team",
        )
    if len(files) > _MANY_FILES:
        yield _said(
            "many-files",
            "warning",
            f"the repo-server checks out all {len(files)} files for every change",
            "symph gitops gc --keep 5",
        )
    if refs is not None and refs > _MANY_REFS:
        yield _said("many-refs", "warning", f"{refs} refs are listed at every poll", "delete merged branches")


def _said(rule: str, severity: str, what: str, next: str) -> Finding:
    return Finding(rule=rule, severity="warning" if severity == "warning" else "info", path="", what=what, next=next)
