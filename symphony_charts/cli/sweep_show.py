"""`symph sweep show`: the states and metrics of a sweep's trials, at any time."""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from symphony_charts.cli import output
from symphony_charts.cli.sweep_trials import columns_of, outcome_record, outcomes_of, reader_of
from symphony_charts.errors import NotFound, UsageError
from symphony_charts.formats import data
from symphony_charts.sweep.metrics import best_of, goal_of, means_over
from symphony_charts.sweep.record import Sweep, find_sweep
from symphony_charts.system.files import write_file


def show(args: argparse.Namespace) -> int:
    """Print the trials with their metrics, and the best one by the metric that the user chose."""
    if not args.sweep_name:
        raise UsageError("which sweep?", next="symph sweep show NAME, the experiment's name")
    if args.on == "argo":
        raise UsageError("a Workflow's trials are shown by Argo", next="argo list, then argo get WORKFLOW")
    sweep = find_sweep(args.sweep_name, args.on)
    if args.on == "kube":
        args.namespace = args.namespace or sweep.namespace
    outcomes, read = outcomes_of(args, sweep), reader_of(args)
    series = {outcome.trial.name: read(outcome.trial.name) for outcome in outcomes}
    # Programs often print their settings, which are no metrics.
    given = {key.rpartition(".")[2].lower() for settings in sweep.trials.values() for key in settings}
    names = list(dict.fromkeys(name for each in series.values() for name in each if name.lower() not in given))
    known = ", ".join(names) or "none"
    metric = args.metric or (args.sort if args.sort in names else "")
    if metric and metric not in names:
        raise NotFound(f'no trial has the metric "{metric}"', next=f"there are: {known}")
    needing = next((flag for flag in ("goal", "mean") if getattr(args, flag)), "")
    if needing and not metric:
        raise UsageError(f"--{needing} needs a metric", next=f"--metric NAME; the trials have: {known}")
    last = {trial: points[metric][-1][1] for trial, points in series.items() if metric in points}
    goal = args.goal or goal_of(metric)
    best = best_of(last, goal)
    chosen = {metric, args.sort} if metric else set(names)
    if args.mean:
        return _print_means(args, sweep, metric, last)
    items = [
        outcome_record(outcome)
        | {"metrics": {name: points[-1][1] for name, points in series[outcome.trial.name].items() if name in names}}
        | {"best": outcome.trial.name == best}
        for outcome in outcomes
    ]
    if args.sort:
        items = _sorted(items, args.sort, is_falling=args.sort == metric and goal == "max")
    if args.csv:
        return _write_csv(args.csv, items, names)
    shown = [output.Column(name.upper(), partial(_metric, name), is_wide=name not in chosen) for name in names]
    columns = columns_of(outcomes[0].trial, outcomes)
    output.print_items(args, "Trial", items, [*columns, *shown])
    if args.output not in ("table", "wide"):
        return 0
    if best is not None:
        word = "highest" if goal == "max" else "lowest"
        output.note(f"best: {best}, {metric} {last[best]:g} ({word}, of {len(last)} trials; --metric, --goal choose)")
    elif names:
        output.next_step(f"symph sweep show {sweep.name} --metric NAME names the best trial")
    return 0


def _metric(name: str, item: Mapping[str, object]) -> object:
    value = data.sub(item, "metrics").get(name)
    return None if value is None else f"{value:.6g}"


def _sorted(items: Sequence[dict[str, object]], key: str, *, is_falling: bool) -> list[dict[str, object]]:
    """Sort the items by a metric, a setting or a field; those that lack it come last."""

    def value(item: Mapping[str, object]) -> object:
        return {**item, **data.sub(item, "settings"), **data.sub(item, "metrics")}.get(key)

    def order(item: Mapping[str, object]) -> tuple[bool, float, str]:
        found = value(item)
        try:
            number = float(str(found))
        except ValueError:
            return found is None, 0.0, str(found)
        return False, -number if is_falling else number, ""

    if all(value(item) is None for item in items):
        raise UsageError(f'no trial has "{key}" to sort by', next="a metric, a setting, state or seconds")
    return sorted(items, key=order)


def _print_means(args: argparse.Namespace, sweep: Sweep, metric: str, last: Mapping[str, float]) -> int:
    keys = args.mean.split(",")
    unknown = [key for key in keys if not any(key in settings for settings in sweep.trials.values())]
    if unknown:
        raise UsageError(f"no trial has the setting {', '.join(unknown)}", next="--mean seed")
    means = means_over(keys, sweep.trials, last)
    items = [
        {
            "name": " ".join(f"{key}={text}" for key, text in each.settings.items()) or "all",
            "settings": each.settings,
            "metric": metric,
            "count": each.count,
            "mean": each.mean,
            "deviation": each.deviation,
        }
        for each in means
    ]
    columns = [
        output.Column("SETTINGS", "name"),
        output.Column("TRIALS", "count"),
        output.Column(f"MEAN {metric.upper()}", lambda item: f"{item['mean']:.6g}"),
        output.Column("DEVIATION", lambda item: f"{item['deviation']:.3g}"),
    ]
    output.print_items(args, "Mean", items, columns, empty="no trial has measured anything")
    return 0


def _write_csv(file: str, items: Sequence[Mapping[str, object]], names: Sequence[str]) -> int:
    keys = list(dict.fromkeys(key for item in items for key in data.sub(item, "settings")))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["trial", *keys, "state", "status", "seconds", *names])
    for item in items:
        settings, metrics = data.sub(item, "settings"), data.sub(item, "metrics")
        facts = [item["state"], item["status"], item["seconds"]]
        writer.writerow([item["name"], *map(settings.get, keys), *facts, *map(metrics.get, names)])
    if file == "-":
        sys.stdout.write(text.getvalue())
    else:
        write_file(Path(file), text.getvalue().encode())
    return 0
