"""`symph plan`: the nodes on which an experiment would run, and the certainty that it fits."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from symphony_charts import prepare
from symphony_charts.backend import diagnosis, protocol
from symphony_charts.backend import status as backend_status
from symphony_charts.cli import options, output, specs
from symphony_charts.errors import NotFound, PlacementError, SymphError, UsageError
from symphony_charts.kinds import registry
from symphony_charts.kubernetes import experiments
from symphony_charts.kubernetes import status as kubernetes_status
from symphony_charts.placement import node_svg, report
from symphony_charts.placement import plan as placement_plan
from symphony_charts.placement.fit import demand, verdicts
from symphony_charts.placement.pools import pool, readers
from symphony_charts.settings import project
from symphony_charts.spec import files as spec_files
from symphony_charts.spec import pods as spec_pods
from symphony_charts.system import files as system_files


def _hours(text: str) -> float:
    hours = float(text)
    if not 0 < hours < 1e6:
        raise ValueError(text)
    return hours


def configure(parser: argparse.ArgumentParser) -> None:
    options.add_specs(parser, many=False)
    options.add_pools(parser, "node pools: a Terraform file, plan or state, gcloud's or kubectl's output, a pools.yaml")
    options.add_list(parser, "--var", metavar="KEY=VALUE", help="a Terraform variable; may be repeated")
    options.add_system(parser)
    options.add_values(parser)
    parser.add_argument("--hours", metavar="H", type=_hours, help="print the cost of this many hours")
    parser.add_argument(
        "--trials",
        metavar="N",
        type=options.count,
        default=1,
        help="with --hours: that many runs, as a sweep makes them",
    )
    options.add_output(parser, ("table", "wide", "json", "yaml"))
    parser.add_argument("--explain", metavar="PROCESS", help="explain why this pool was chosen, and why not the others")
    parser.add_argument("--svg", metavar="FILE", help="draw the nodes with their pods")
    options.add_examples(
        parser,
        "symph plan experiment.yaml --pools cluster.tf.json",
        "symph plan experiment.yaml --pools pools.yaml --explain learner",
        "kubectl get nodes,pods,daemonsets -A -o json > live.json; symph plan experiment.yaml --pools live.json",
        "symph plan experiment.yaml --pools pools.yaml --svg plan.svg",
        "symph plan experiment.yaml --pools pools.yaml --hours 12 --trials 8",
        "symph plan experiment.yaml --pools pools.yaml --system cpu=470m,memory=774Mi",
    )


_STATES = {"PROVEN": "good", "PACKABLE": "busy", "UNKNOWN": "busy", "NO": "bad"}


def run(args: argparse.Namespace) -> int:
    """Print the plan; raises PlacementError (exit 4) if a group cannot be scheduled."""
    spec = spec_files.read(args.spec, args.spec_set)
    if not (args.pools or spec.experiment.placement.pools or project.settings_of_spec(spec.path).pools):
        hint = "add --pools FILE, or placement.pools to the spec; symph init makes a pools.yaml to begin with"
        raise UsageError("no node pools are known", str(spec.path), hint)
    prepared = specs.prepared_of(args, spec, force=True)
    plan = prepared.plan
    assert plan is not None  # noqa: S101 - there are pools
    if args.explain:
        # A group or lone process, or a process of a group.
        is_pod = any(group.name == args.explain for group in plan.groups)
        pod = args.explain if is_pod else spec_pods.find_process(prepared.experiment, args.explain).pod
        _explain(args, plan, pod)
        return 0
    if args.svg:
        system_files.write_file(Path(args.svg), node_svg.draw_nodes(plan).encode())
    _print(args, prepared.own, plan)
    lost = sum(group.verdict == "NO" for group in plan.groups)
    if lost:
        raise PlacementError(f"{lost} of {len(plan.groups)} group{'s' * (len(plan.groups) > 1)} cannot be scheduled")
    if args.output == "table":
        _print_notes(prepared, spec.path)
    return 0


def _print_notes(prepared: prepare.Prepared, path: Path) -> None:
    """Print notes that a plan of pods lacks: the effect of a failure, and the command that shows changes of runs."""
    if text := registry.failure_difference(prepared.experiment):
        output.note(f"note: {text}")
    if environments := project.settings_of_spec(path).environments:
        env, name = next(iter(environments)), prepared.experiment.name
        output.note(f"note: to see which objects of {name} move, restart or end: symph diff SPEC --env {env}")


def _print(args: argparse.Namespace, own: prepare.Rendering, plan: placement_plan.Plan) -> None:
    if args.output in ("json", "yaml"):
        data = report.plan_data(plan, hours=args.hours, trials=args.trials)
        output.print_record(args, "Plan", {**data, "afterRun": own.after_run.data})
        return
    output.line(report.plan_sentence(plan))
    columns = [
        output.Column("POOL", "name"),
        *output.columns("machine", "nodes", "cpu", "memory", "gpu"),
        output.Column("$/H", "price"),
        output.Column("WASTE", "waste", is_wide=True),
        output.Column("KNOWN BY", "accuracy", is_wide=True),
        output.Column("WHAT", "what"),
        output.Column("SOURCE", "source", is_wide=True),
    ]
    if rows := report.pool_rows(plan):
        output.print_items(args, "Pool", rows, columns)
    groups = report.group_rows(plan)
    name_width = max((len(group.name) for group in groups), default=0)
    verdict_width = max((len(group.verdict) for group in groups), default=0)
    for group in groups:
        verdict = output.paint(group.verdict.ljust(verdict_width), _STATES[group.verdict])
        output.line(f"{group.name.ljust(name_width)}  {verdict}  {group.why}")
        if group.next:
            output.line(f"{' ' * name_width}  next: {group.next}")
    output.line(report.total_line(plan))
    for line in report.money_lines(plan, args.hours, args.trials):
        output.line(f"  {line}")
    if text := own.after_run.text:
        output.line(f"  {text}")
    for note in plan.notes:
        output.note(f"note: {note}")


def _explain(args: argparse.Namespace, plan: placement_plan.Plan, pod: str) -> None:
    explanation = report.explain(plan, pod)
    if explanation is None:
        raise NotFound(f'"{pod}" has no pods in this plan', "", "are its replicas 0?")
    if args.output in ("json", "yaml"):
        output.print_record(args, "Explanation", explanation)
        return
    asks = ", ".join(verdicts.amount_text(k, v) for k, v in explanation["requests"].items() if k != "pods")
    output.line(f"{explanation['name']}   {explanation['verdict']}   asks for {asks}")
    for line in (explanation["why"], *explanation["reasons"]):
        output.line(f"  {line}")
    columns = [
        *output.columns("pool", "pods"),
        output.Column("PER NODE", "perNode"),
        output.Column("WHY NOT", lambda row: "; ".join(output.texts(row["obstacles"]))),
    ]
    output.line(output.format_table(explanation["pools"], columns, room=output.room_of(args.output)))


_LIVE = "the cluster's nodes"


def with_plan(
    watcher: protocol.Watcher, status: backend_status.ExperimentStatus, why: diagnosis.Diagnosis
) -> diagnosis.Diagnosis:
    """Add the plan's verdict and suggestion to the diagnosis, using the project's pools, else the cluster's nodes."""
    if not isinstance(watcher, experiments.KubeExperiments):
        return why
    first = next(instance for instance in status.instances if instance.path == why.paths[0])
    try:
        pools = _pools(watcher, status)
        plan = placement_plan.plan_demands(
            demand.demands_of(watcher.workloads(status.name), pools=pools), pools, experiment=status.name
        )
    except SymphError as error:
        return replace(why, text=f"{why.text}; no plan: {error.what}")
    group = next((group for group in plan.groups if group.name == (first.group or first.process)), None)
    if group is None:
        return why
    text = f"{why.text}; the plan on {pools.source}: {group.verdict}, {group.why}"
    return replace(why, text=text, next=group.next or why.next)


def _pools(watcher: experiments.KubeExperiments, status: backend_status.ExperimentStatus) -> pool.Pools:
    files = project.find_settings(Path.cwd()).pools
    if files:
        return readers.read_pool_files(files)
    api = watcher.api
    nodes = [{**item, "kind": "Node"} for item in api.listed(api.collection("v1", "Node", None))]
    pods = [
        {**item, "kind": "Pod"}
        for item in api.listed(api.collection("v1", "Pod", None))
        # Exclude the experiment's own pods, because they are the ones to plan.
        if (item["metadata"].get("labels") or {}).get(kubernetes_status.INSTANCE) != status.name
    ]
    listed = {"apiVersion": "v1", "kind": "List", "items": [*nodes, *pods]}
    return readers.pools_of_data(listed, _LIVE, catalog=readers.user_catalog())
