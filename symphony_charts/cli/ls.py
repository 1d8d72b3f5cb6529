"""`symph ls`: the experiments of this machine, or of a cluster."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from typing import get_args

from symphony_charts.backend import protocol, status
from symphony_charts.cli import experiments, options, output
from symphony_charts.errors import UsageError
from symphony_charts.sweep import trial_runs


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment_name", metavar="EXPERIMENT", nargs="?", help="only those with this in their names")
    parser.add_argument("-a", "--all", action="store_true", help="also the last run of experiments that have ended")
    parser.add_argument("--sweep", metavar="NAME", default=None, help="only the trials of this sweep, each by itself")
    parser.add_argument(
        "--phase", metavar="PHASE", action="append", default=[], help="only those that are so: running, failed, ..."
    )
    options.add_selector(parser)
    options.add_backend(parser)
    options.add_output(parser)
    options.add_examples(
        parser,
        "symph ls",
        "symph ls -a -o wide",
        "symph ls -a --sweep descent --phase failed",
        "symph ls --on kube",
        "symph ls -n ml -o name",
        "symph ls -l team=rl,stage!=old",
    )


# As many trials of a sweep are listed one by one.
_FEW = 3


def run(args: argparse.Namespace) -> int:
    """List them by name; in the table many trials of a sweep are one line, unless they are asked for."""
    watcher = experiments.watcher_of(args)
    sweeps = {trial: sweep.name for sweep in trial_runs.sweeps_of(watcher.backend) for trial in sweep.trials}
    phases = [phase for text in args.phase for phase in text.split(",")]
    unknown = [phase for phase in phases if phase not in get_args(status.Phase)]
    if unknown:
        raise UsageError(
            f"no experiment is ever {', '.join(unknown)}", next=f"one of {', '.join(get_args(status.Phase))}"
        )
    listed = [
        experiment
        for experiment in watcher.experiments(ended=args.all)
        if (args.experiment_name or "") in experiment.name
        and (not args.selector or args.selector(experiment.labels))
        and (not phases or experiment.phase in phases)
        and args.sweep in (None, sweeps.get(experiment.name))
    ]
    chosen = protocol.chosen_at(watcher.place)
    items: list[dict[str, object]] = [
        {
            "name": experiment.name,
            "experiment": experiment.experiment,
            "phase": experiment.phase,
            "age": status.age_since(experiment.started),
            "started": experiment.started,
            "ended": experiment.ended,
            "seconds": experiment.seconds,
            "processes": sum(not each.is_step for each in experiment.instances),
            "namespace": experiment.namespace,
            "heldBy": list(experiment.held_by),
            "run": experiment.run,
            "labels": dict(experiment.labels),
            "note": experiment.note,
            "sweep": sweeps.get(experiment.name, ""),
            "current": experiment.name == chosen,
        }
        for experiment in listed
    ]
    if args.output in ("table", "wide") and not (args.experiment_name or args.sweep or phases):
        items = _grouped(items, watcher.backend)
    columns = [
        output.Column("NAME", "name"),
        output.Column("PHASE", "phase", state=experiments.phase_color),
        output.Column("AGE", "age"),
        *experiments.took_columns(items),
        *([output.Column("NOTE", "note")] if any(item["note"] for item in items) else []),
        output.Column("PROCESSES", "processes", is_wide=True),
        output.Column("NAMESPACE", "namespace", is_wide=True),
        output.Column("HELD BY", lambda item: ", ".join(output.texts(item["heldBy"])), is_wide=True),
        output.Column("RUN", "run", is_wide=True),
    ]
    output.print_items(args, "Experiment", items, columns, empty="no experiment runs here")
    return 0


def _grouped(items: Sequence[dict[str, object]], backend: str) -> list[dict[str, object]]:
    """The items, those of a sweep that has many as one, at the place of its first."""
    counts = Counter(str(item["sweep"]) for item in items if item["sweep"])
    groups: dict[str, list[dict[str, object]]] = {}
    for item in items:
        sweep = str(item["sweep"])
        key = f"sweep {sweep}" if counts[sweep] > _FEW else f"{item['namespace']}/{item['name']}"
        groups.setdefault(key, []).append(item)
    return [held[0] if len(held) == 1 else _as_one(held, backend) for held in groups.values()]


def _as_one(trials: Sequence[dict[str, object]], backend: str) -> dict[str, object]:
    """The trials of a sweep as one item: how many are how."""
    sweep, first = str(trials[0]["sweep"]), min(trials, key=lambda item: float(str(item["started"])))
    phases = Counter(str(item["phase"]) for item in trials)
    on = " --on kube" if backend == "kube" else ""
    return {
        **first,
        "name": f"{sweep}-* ({len(trials)} trials)",
        "phase": ", ".join(f"{count} {phase}" for phase, count in phases.most_common()),
        "note": f"symph sweep show {sweep}{on}",
        "ended": None,
        "seconds": None,
        "processes": sum(int(str(item["processes"])) for item in trials),
        "heldBy": [],
        "run": "",
    }
