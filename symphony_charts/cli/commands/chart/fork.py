"""Check the chart of a fork of the template with helm, since nothing here knows which objects it makes."""

from __future__ import annotations

import json

from symphony_charts.cli import output
from symphony_charts.errors import CheckFailed
from symphony_charts.formats.data import Values, sub
from symphony_charts.kubernetes.releases.helm_program import lint_chart, template_chart
from symphony_charts.package import Packaged
from symphony_charts.prepare import Prepared

__all__ = ["check_fork"]


def check_fork(item: Packaged, fork: str) -> None:
    """Warn about the objects that differ from those of the built-in template.

    Raises:
        CheckFailed: Helm's lint refuses the chart.
        ToolFailed: Helm cannot render it.
        ToolMissing: There is no helm.
    """
    chart, prepared, release = item.chart, item.prepared, item.prepared.own.release
    linted = lint_chart(chart.name, chart.files)
    if linted.status:
        text = f"{linted.text}\n{linted.error_text}".strip()
        raise CheckFailed(f"helm lint refuses the chart that {fork} makes:\n{text}", next="fix the template")
    values = _without_sealed(prepared)
    # Helm's own label says that helm manages them.
    native = json.dumps(prepared.under(values, service="Helm", version=chart.version).objects)
    theirs = _by_name(template_chart(chart.name, chart.files, release.name, namespace=release.namespace, values=values))
    ours = _by_name(json.loads(native))
    other = sorted(name for name in theirs.keys() | ours.keys() if theirs.get(name) != ours.get(name))
    names = ", ".join(other[:5]) + (", ..." if len(other) > 5 else "")
    said = (
        f"{len(other)} of {len(theirs)} objects are not those of symph's own template ({names})"
        if other
        else (f"all {len(theirs)} objects are those of symph's own template")
    )
    output.warn(f"{chart.name}: {said}; render, lint, plan and diff speak of symph's own")


def _without_sealed(prepared: Prepared) -> Values:
    """Return the values with which helm renders a chart that still lacks its sealed secrets."""
    secrets = sub(prepared.values, "secrets")
    is_open = prepared.experiment.secret_source.source == "sealed" and not secrets.get("encryptedData")
    return {"secrets": {"name": "sealed-later"}} if is_open and secrets and not secrets.get("name") else {}


def _by_name(objects: list[dict[str, object]]) -> dict[str, dict[str, object]]:
    return {f"{item.get('kind')}/{sub(item, 'metadata').get('name')}": item for item in objects}
