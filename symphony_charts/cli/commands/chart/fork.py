"""A fork of the chart template makes objects that nothing here can foretell: helm lints and renders what it makes."""

from __future__ import annotations

import json

from symphony_charts.chart.render.sealing import unsealed
from symphony_charts.chart.render.values import Values
from symphony_charts.cli import output
from symphony_charts.errors import CheckFailed
from symphony_charts.formats.data import sub
from symphony_charts.kubernetes.releases.helm_program import lint_chart, template_chart
from symphony_charts.package import Packaged

__all__ = ["check_fork"]


def check_fork(item: Packaged, fork: str) -> None:
    """Say on stderr which objects are not those of this installation's template.

    Raises CheckFailed where helm's lint says no, ToolFailed where helm cannot render it, ToolMissing without helm.
    """
    chart, release = item.chart, item.prepared.own.release
    linted = lint_chart(chart.name, chart.files)
    if linted.status:
        text = f"{linted.text}\n{linted.error_text}".strip()
        raise CheckFailed(f"helm lint refuses the chart that {fork} makes:\n{text}", next="mend the template")
    # Helm's own label says that helm manages them.
    values = _looked_at(item.prepared.values)
    native = json.dumps(item.prepared.under(values, service="Helm", version=chart.version).objects)
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


def _looked_at(values: Values) -> Values:
    """The values under which helm renders a chart that nothing is sealed for yet."""
    secrets = sub(values, "secrets")
    is_open = secrets.get("source") == "sealed" and unsealed(secrets, sub(secrets, "files"))
    return {"secrets": {"source": "existing"}} if is_open else {}


def _by_name(objects: list[dict[str, object]]) -> dict[str, dict[str, object]]:
    return {f"{item.get('kind')}/{sub(item, 'metadata').get('name')}": item for item in objects}
