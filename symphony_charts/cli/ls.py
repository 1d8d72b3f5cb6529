"""`symph ls`: the experiments on this machine."""

from __future__ import annotations

import argparse
import time

from symphony_charts.cli import common, output

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph ls`."""
    parser.add_argument("-a", "--all", action="store_true", help="also the last run of experiments that have ended")
    common.add_output(parser)
    common.add_examples(parser, "symph ls", "symph ls -a -o wide")


def run(args: argparse.Namespace) -> int:
    """List them by name."""
    from symphony_charts.adapters.dirs import state_dir
    from symphony_charts.cluster.local_store import age, live_runs, runs_of

    runs = live_runs()
    if args.all:
        folder = state_dir() / "local"
        names = sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
        runs = [found[-1] for found in map(runs_of, names) if found]
    items = []
    for one in runs:
        state = one.state()
        items.append(
            {
                "name": one.experiment,
                "phase": state["phase"],
                "age": age(time.time() - state["started"]),
                "processes": len(state["processes"]),
                "run": one.run_id,
            }
        )
    columns = [
        output.Column("NAME", "name"),
        output.Column("PHASE", "phase"),
        output.Column("AGE", "age"),
        output.Column("PROCESSES", "processes", is_wide=True),
        output.Column("RUN", "run", is_wide=True),
    ]
    output.print_items(args, "Experiment", items, columns, empty="no experiment runs here")
    return 0
