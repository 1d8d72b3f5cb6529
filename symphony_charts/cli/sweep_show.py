"""`symph sweep show`: the states and metrics of a sweep's trials, at any time."""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from symphony_charts.cli import output
from symphony_charts.cli.defaults import typed
from symphony_charts.cli.experiments import name_of_spec_here
from symphony_charts.cli.sweep_trials import columns_of, metric_of, outcome_record, outcomes_of, reader_of, target_of
from symphony_charts.errors import NotFound, UsageError
from symphony_charts.formats import data
from symphony_charts.sweep.metrics import best_of, goal_of, means_over
from symphony_charts.sweep.record import Sweep, find_sweep, sweeps_of
from symphony_charts.system.files import write_file


def show(args: argparse.Namespace) -> int:
    """Print the trials with their metrics, and the best one by the metric that the user chose."""
    if args.on == "argo":
        raise UsageError("a Workflow's trials are shown by Argo", next="argo list, then argo get WORKFLOW")
    sweep = find_sweep(args.sweep_name or _sweep_here(args.on), args.on)
    if args.on == "kube":
        args.namespace = args.namespace or sweep.namespace
    outcomes, read = outcomes_of(args, sweep), reader_of(args)
    if args.failed:
        outcomes = [outcome for outcome in outcomes if outcome.state == "failed"]
        if not outcomes:
            output.note(f"no trial of {sweep.name} has failed")
            return 0
    series = {outcome.trial.name: read(outcome.trial.name) for outcome in outcomes}
    # Programs often print their settings, which are no metrics.
    given = {key.rpartition(".")[2].lower() for settings in sweep.trials.values() for key in settings}
    names = list(dict.fromkeys(name for each in series.values() for name in each if name.lower() not in given))
    known = ", ".join(names) or "none"
    metric = args.metric or (args.sort if args.sort in names else "")
    unknown = [name for name in (metric, *args.more_metrics) if name and name not in names]
    if unknown:
        raise NotFound(f'no trial has the metric "{unknown[0]}"', next=f"there are: {known}")
    needing = next((flag for flag in ("goal", "mean") if getattr(args, flag)), "")
    if needing and not metric:
        raise UsageError(f"--{needing} needs a metric", next=f"--metric NAME; the trials have: {known}")
    last = {trial: points[metric][-1][1] for trial, points in series.items() if metric in points}
    goal = args.goal or goal_of(metric)
    best = best_of(last, goal)
    chosen = {metric, args.sort, *args.more_metrics} if args.metric else set(names)
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
    shown = [output.Column(name.upper(), partial(metric_of, name), is_wide=name not in chosen) for name in names]
    columns = columns_of(outcomes[0].trial, outcomes)
    output.print_items(args, "Trial", items, [*columns, *shown])
    if args.output not in ("table", "wide"):
        return 0
    if best is not None:
        word = "highest" if goal == "max" else "lowest"
        output.note(f"best: {best}, {metric} {last[best]:g} ({word}, of {len(last)} trials; --metric, --goal choose)")
    elif args.failed:
        output.next_step(f"symph logs {outcomes[0].trial.name}{target_of(args, args.namespace or '')}")
    elif names:
        output.next_step(f"symph sweep show {sweep.name} --metric {names[0]}")
    return 0


def _sweep_here(backend: str) -> str:
    """Return the sweep of this folder's spec, else the only one. Raises UsageError."""
    known = [sweep.name for sweep in sweeps_of(backend)]
    here = name_of_spec_here()
    if here not in known and len(known) != 1:
        step = (
            f"symph sweep show {known[0]}; there are: {', '.join(known)}" if known else "start one: symph sweep --help"
        )
        raise UsageError("which sweep?", next=step)
    return here if here in known else known[0]


def list_sweeps(args: argparse.Namespace) -> int:
    """Print the sweeps that this machine ran, with the states of trials that ran here; clusters are not asked."""
    backends = (args.on,) if typed(args, "on") else ("tmux", "kube")
    items: list[dict[str, object]] = []
    for sweep in (sweep for backend in backends for sweep in sweeps_of(backend)):
        states = (
            Counter(outcome.state for outcome in outcomes_of(args, sweep)) if sweep.backend == "tmux" else Counter()
        )
        text = ", ".join(f"{count} {state}" for state, count in states.items())
        item = {"name": sweep.name, "on": sweep.backend, "namespace": sweep.namespace, "trials": len(sweep.trials)}
        items.append(item | {"states": text})
    columns = output.columns("name", "on", "namespace", "trials", "states")
    output.print_items(args, "Sweep", items, columns, empty="no sweep was run from here")
    if items and args.output == "table":
        output.next_step(f"symph sweep show {items[0]['name']}{' --on kube' if items[0]['on'] == 'kube' else ''}")
    return 0


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
