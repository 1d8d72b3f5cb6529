"""`symph plan`: where an experiment would run, and whether it certainly can."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from symphony_charts.cli import output
from symphony_charts.cli.values import prepared_of
from symphony_charts.errors import NotFound, PlacementError, UsageError
from symphony_charts.kinds.leftovers import failure_difference
from symphony_charts.placement.fit.reasons import amount_text
from symphony_charts.placement.plan import Plan
from symphony_charts.placement.report import tables as report
from symphony_charts.placement.report.money import money_lines
from symphony_charts.placement.report.node_svg import draw_nodes
from symphony_charts.placement.report.tables import explain
from symphony_charts.prepare import Prepared
from symphony_charts.settings.project import settings_of_spec
from symphony_charts.spec import files
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import find_process
from symphony_charts.system.files import write_file

__all__ = ["run"]

_STATES = {"PROVEN": "good", "PACKABLE": "busy", "UNKNOWN": "busy", "NO": "bad"}


def run(args: argparse.Namespace) -> int:
    """Print the plan; raises PlacementError (exit 4) when a group cannot be scheduled."""
    spec = files.read(args.spec, args.spec_set)
    if not (args.pools or spec.experiment.placement.pools or settings_of_spec(spec.path).pools):
        hint = "add --pools FILE, or placement.pools to the spec; symph init makes a pools.yaml to begin with"
        raise UsageError("no node pools are known", str(spec.path), hint)
    prepared = prepared_of(args, spec, force=True)
    plan = prepared.plan
    assert plan is not None  # noqa: S101 - there are pools
    if args.explain:
        _explain(args, plan, _pod_named(prepared.experiment, plan, args.explain))
        return 0
    if args.svg:
        write_file(Path(args.svg), draw_nodes(plan).encode())
    _print(args, plan)
    lost = sum(group.verdict == "NO" for group in plan.groups)
    if lost:
        raise PlacementError(f"{lost} of {len(plan.groups)} groups cannot be scheduled")
    if args.output == "table":
        _print_notes(prepared, spec.path)
    return 0


def _print_notes(prepared: Prepared, path: Path) -> None:
    """Say what a plan of pods does not show: what a failure ends, and who tells what becomes of what runs already."""
    if text := failure_difference(prepared.experiment):
        output.note(f"note: {text}")
    if environments := settings_of_spec(path).environments:
        env, name = next(iter(environments)), prepared.experiment.name
        output.note(f"note: what of {name} moves, starts anew or ends is told by: symph diff SPEC --env {env}")


def _print(args: argparse.Namespace, plan: Plan) -> None:
    if args.output in ("json", "yaml"):
        output.print_record(args, "Plan", report.plan_data(plan, hours=args.hours, trials=args.trials))
        return
    output.line(report.plan_sentence(plan))
    rows = report.pool_rows(plan)
    if rows:
        output.print_items(args, "Pool", rows, _columns())
    color = output.use_color(sys.stdout, getattr(args, "color", None))
    groups = report.group_rows(plan)
    name_width = max((len(group.name) for group in groups), default=0)
    verdict_width = max((len(group.verdict) for group in groups), default=0)
    for group in groups:
        verdict = output.paint(group.verdict.ljust(verdict_width), _STATES[group.verdict], color)
        output.line(f"{group.name.ljust(name_width)}  {verdict}  {group.why}")
        if group.next:
            output.line(f"{' ' * name_width}  next: {group.next}")
    output.line(report.total_line(plan))
    for line in money_lines(plan, args.hours, args.trials):
        output.line(f"  {line}")
    for note in plan.notes:
        output.note(f"note: {note}")


def _columns() -> list[output.Column]:
    return [
        output.Column("POOL", "name"),
        output.Column("MACHINE", "machine"),
        output.Column("NODES", "nodes"),
        output.Column("CPU", "cpu"),
        output.Column("MEMORY", "memory"),
        output.Column("GPU", "gpu"),
        output.Column("$/H", "price"),
        output.Column("WASTE", "waste", is_wide=True),
        output.Column("KNOWN BY", "accuracy", is_wide=True),
        output.Column("WHAT", "what"),
        output.Column("SOURCE", "source", is_wide=True),
    ]


def _pod_named(experiment: Experiment, plan: Plan, name: str) -> str:
    """The group or lone process that `name` means: itself, or the one that holds the process of that name."""
    return name if any(group.name == name for group in plan.groups) else find_process(experiment, name).pod


def _explain(args: argparse.Namespace, plan: Plan, pod: str) -> None:
    explanation = explain(plan, pod)
    if explanation is None:
        raise NotFound(f'"{pod}" has no pods in this plan', "", "are its replicas 0?")
    if args.output in ("json", "yaml"):
        output.print_record(args, "Explanation", explanation)
        return
    requests = explanation["requests"]
    asks = (
        ", ".join(amount_text(k, v) for k, v in requests.items() if k != "pods") if isinstance(requests, dict) else ""
    )
    output.line(f"{explanation['name']}   {explanation['verdict']}   asks for {asks}")
    output.line(f"  {explanation['why']}")
    reasons, pools = explanation["reasons"], explanation["pools"]
    for reason in reasons if isinstance(reasons, list) else []:
        output.line(f"  {reason}")
    rows = pools if isinstance(pools, list) else []
    columns = [
        output.Column("POOL", "pool"),
        output.Column("PODS", "pods"),
        output.Column("PER NODE", "perNode"),
        output.Column("WHY NOT", lambda row: "; ".join(output.texts(row["obstacles"]))),
    ]
    output.line(output.format_table(rows, columns, room=output.room_of(args.output)))
