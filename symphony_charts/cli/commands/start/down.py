"""`symph down`: end an experiment on this machine, and everything it started."""

from __future__ import annotations

import argparse

from symphony_charts.cli import output
from symphony_charts.cli.commands.tools.local_volumes import say_what_is_kept
from symphony_charts.cli.experiments import run_to_change
from symphony_charts.local import up
from symphony_charts.local.runs import live_runs

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """End the runs; a process that survives makes this fail and is named."""
    runs = live_runs(None if args.all else run_to_change(args, args.experiment_name, "down").experiment)
    for live_run in [] if args.dry_run else runs:
        if args.lost:
            up.give_up(live_run)
        else:
            up.down(live_run)
        say_what_is_kept(live_run)
    items = [{"name": live_run.experiment, "run": live_run.run_id} for live_run in runs]
    columns = [output.Column("WOULD END" if args.dry_run else "ENDED", "name"), output.Column("RUN", "run")]
    output.print_items(args, "Run", items, columns, empty="nothing runs here")
    return 0
