"""The report shows a plan as one HTML page: both pictures and the tables, with nothing to download."""

from __future__ import annotations

from html import escape

from symphony_charts.placement.plan import Plan
from symphony_charts.placement.report.money import money_lines
from symphony_charts.placement.report.node_svg import draw_nodes
from symphony_charts.placement.report.service_svg import draw_graph
from symphony_charts.placement.report.tables import group_rows, plan_sentence, pool_rows, total_line
from symphony_charts.spec.model import Experiment

__all__ = ["plan_page"]

_STYLE = """
body{font:14px/1.45 'DejaVu Sans',Helvetica,Arial,sans-serif;color:#1f2933;background:#fff}
body{margin:24px auto;max-width:1040px;padding:0 20px}
table{border-collapse:collapse;margin:12px 0 24px;width:100%}
th,td{text-align:left;padding:5px 12px 5px 0;border-bottom:1px solid #e4e7eb;vertical-align:top}
th{font-weight:600;color:#616e7c;font-size:12px}
.PROVEN{color:#2f855a}.PACKABLE,.UNKNOWN{color:#b7791f}.NO{color:#c53030}
.verdict{font-weight:600}.next{color:#616e7c}
svg{max-width:100%;height:auto}
"""
_COLUMNS = (
    ("name", "pool"), ("machine", "machine"), ("nodes", "nodes"), ("cpu", "CPU"), ("memory", "memory"), ("gpu", "GPU"),
    ("price", "$/h"), ("what", "what runs there"),
)  # fmt: skip


def plan_page(plan: Plan, experiment: Experiment) -> str:
    """The HTML text."""
    colors = {group.name: group.demand for group in plan.groups}
    name = escape(plan.experiment)
    parts = [
        "<!doctype html>",
        f"<html lang='en'><head><meta charset='utf-8'><title>Plan of {name}</title>",
        f"<style>{_STYLE}</style></head><body>",
        f"<h1>{name} on {escape(plan.source)}</h1>",
        f"<p class='verdict {plan.verdict}'>{escape(plan_sentence(plan))}</p>",
        f"<p>{escape(total_line(plan))}</p>",
        *(f"<p class='next'>{escape(line)}</p>" for line in money_lines(plan)),
        "<h2>Verdicts</h2>",
        _groups(plan),
        "<h2>Pools</h2>",
        _pools(plan),
        "<h2>Nodes</h2>",
        draw_nodes(plan),
        "<h2>Processes and services</h2>",
        draw_graph(experiment, colors),
    ]
    if plan.notes:
        parts.append("<h2>Notes</h2><ul>" + "".join(f"<li>{escape(note)}</li>" for note in plan.notes) + "</ul>")
    return "\n".join((*parts, "</body></html>", ""))


def _groups(plan: Plan) -> str:
    rows = []
    for group in group_rows(plan):
        hint = f"<br><span class='next'>next: {escape(group.next)}</span>" if group.next else ""
        rows.append(
            f"<tr><td>{escape(group.name)}</td><td>{group.count}</td>"
            f"<td class='verdict {group.verdict}'>{group.verdict}</td><td>{escape(group.why)}{hint}</td></tr>"
        )
    return f"<table><tr><th>group</th><th>pods</th><th>verdict</th><th>why</th></tr>{''.join(rows)}</table>"


def _pools(plan: Plan) -> str:
    head = "".join(f"<th>{title}</th>" for _, title in _COLUMNS)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(str(row[key]))}</td>" for key, _ in _COLUMNS) + "</tr>"
        for row in pool_rows(plan)
    )
    return f"<table><tr>{head}</tr>{rows}</table>"
