"""The gate: the findings about the chart of a spec, and the verdict that refuses it.

`symph validate` prints the findings; `symph package`, `publish` and `install` refuse charts with errors. All of them
use this module, so that they agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from symphony_charts.chart.files.chart import Chart
from symphony_charts.chart.lint import SEVERITIES, Finding, Severity, lint_release
from symphony_charts.chart.release import ORIGIN
from symphony_charts.errors import ChartRefused, Conflict, PlacementError, Problem
from symphony_charts.prepare import Prepared, Rendering
from symphony_charts.secrets.files import guard_of
from symphony_charts.settings.project import settings_of_spec
from symphony_charts.spec.files import SpecFile

# The files of a chart with text of the spec. All others come from the template or from these.
_OF_SPEC = ("Chart.yaml", "values.yaml", ORIGIN, "files/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The `findings` about the chart of the spec file `path`, the worst first."""

    path: str
    findings: Sequence[Finding]

    @property
    def warnings(self) -> int:
        """The number of warnings."""
        return sum(finding.severity == "warning" for finding in self.findings)

    def refuse(self) -> None:
        """Raise an error if a finding is one.

        Raises ChartRefused with all errors. If all of them are secrets in the chart, or all are groups that cannot be
        scheduled, raises Conflict or PlacementError, which have exit codes of their own.
        """
        errors = [finding for finding in self.findings if finding.severity == "error"]
        problems = [Problem(what=one.what, path=f"{self.path}, {one.path}", next=one.next) for one in errors]
        rules = {finding.rule for finding in errors}
        if rules == {"leak"}:
            raise Conflict("; ".join(one.what for one in errors), problems[0].path, problems[0].next)
        if rules == {"fit"}:
            raise PlacementError(problems[0].what, problems[0].path, problems[0].next)
        if errors:
            raise ChartRefused(problems)


def judge(
    spec: SpecFile,
    prepared: Prepared,
    chart: Chart,
    rendering: Rendering | None = None,
    *,
    is_forced: bool = False,
    kube_version: str | None = None,
) -> Verdict:
    """Return the verdict on the `chart` of `spec`.

    `rendering` is the release to look at (default: that with the chart's own values). With `is_forced`, a group that
    cannot be scheduled is a warning. Without a `kube_version` such as ``1.34`` the objects are checked against one that
    has their kinds.
    """
    seen = rendering or prepared.own
    found = lint_release(chart, seen.chart, seen.values, seen.objects, kube_version=kube_version)
    findings = [replace(finding, path=spec.spec_path(finding.path)) for finding in found]
    for loss in prepared.losses:
        findings.append(Finding(rule="unread", severity="warning", path=loss.path, what=loss.what, next=loss.next))
    guard = guard_of([spec], settings_of_spec(spec.path).allowed_leaks)
    leaks = guard.find({path: content for path, content in chart.files.items() if path.startswith(_OF_SPEC)})
    # The origin repeats what other files hold.
    for leak in {leak.fingerprint: leak for leak in leaks}.values():
        findings.append(Finding(rule="leak", severity="error", path=leak.path, what=str(leak), next=leak.remediation))
    if refusal := seen.refusal():
        severity: Severity = "warning" if is_forced else "error"
        text = {"path": "placement", "what": refusal.what, "next": refusal.next}
        findings.append(Finding(rule="fit", severity=severity, **text))
    worst_first = sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))
    return Verdict(path=str(spec.path), findings=worst_first)
