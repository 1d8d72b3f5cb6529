"""`symph ls`: the experiments of this machine, or of a cluster."""

from __future__ import annotations

import argparse

from symphony_charts.backend.current_experiment import chosen_at
from symphony_charts.backend.status import age_since
from symphony_charts.cli import experiments, output

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """List them by name."""
    watcher = experiments.watcher_of(args)
    listed = [
        experiment
        for experiment in watcher.experiments(ended=args.all)
        if (args.experiment_name or "") in experiment.name
    ]
    chosen = chosen_at(watcher.place)
    items: list[dict[str, object]] = [
        {
            "name": experiment.name,
            "experiment": experiment.experiment,
            "phase": experiment.phase,
            "age": age_since(experiment.started),
            "started": experiment.started,
            "processes": sum(not each.is_step for each in experiment.instances),
            "namespace": experiment.namespace,
            "heldBy": list(experiment.held_by),
            "run": experiment.run,
            "note": experiment.note,
            "current": experiment.name == chosen,
        }
        for experiment in listed
    ]
    columns = [
        output.Column("NAME", "name"),
        output.Column("PHASE", "phase", state=experiments.phase_color),
        output.Column("AGE", "age"),
        *([output.Column("NOTE", "note")] if any(item["note"] for item in items) else []),
        output.Column("PROCESSES", "processes", is_wide=True),
        output.Column("NAMESPACE", "namespace", is_wide=True),
        output.Column("HELD BY", lambda item: ", ".join(output.texts(item["heldBy"])), is_wide=True),
        output.Column("RUN", "run", is_wide=True),
    ]
    output.print_items(args, "Experiment", items, columns, empty="no experiment runs here")
    return 0
