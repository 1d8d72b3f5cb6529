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
    found = [one for one in watcher.experiments(ended=args.all) if (args.experiment_name or "") in one.name]
    chosen = chosen_at(watcher.place)
    items: list[dict[str, object]] = [
        {
            "name": one.name,
            "experiment": one.experiment,
            "phase": one.phase,
            "age": age_since(one.started),
            "started": one.started,
            "processes": sum(not each.is_step for each in one.instances),
            "namespace": one.namespace,
            "heldBy": list(one.held_by),
            "run": one.run,
            "current": one.name == chosen,
        }
        for one in found
    ]
    columns = [
        output.Column("NAME", "name"),
        output.Column("PHASE", "phase", state=lambda item: experiments.LIVE_COLORS.get(str(item["phase"]), "")),
        output.Column("AGE", "age"),
        output.Column("PROCESSES", "processes", is_wide=True),
        output.Column("NAMESPACE", "namespace", is_wide=True),
        output.Column("HELD BY", lambda item: ", ".join(map(str, _texts(item["heldBy"]))), is_wide=True),
        output.Column("RUN", "run", is_wide=True),
    ]
    output.print_items(args, "Experiment", items, columns, empty="no experiment runs here")
    return 0


def _texts(value: object) -> list[object]:
    return value if isinstance(value, list) else []
