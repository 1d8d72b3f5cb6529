"""`symph down`: end an experiment on this machine, and everything it started."""

from __future__ import annotations

import argparse

from symphony_charts.cli import output
from symphony_charts.cli.options import common

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph down`."""
    common.add_experiment(parser)
    parser.add_argument("--all", action="store_true", help="every experiment that runs here")
    common.add_output(parser, ("table", "json", "yaml", "name"))
    common.add_dry_run(parser)
    common.add_examples(parser, "symph down ring", "symph down --all")


def run(args: argparse.Namespace) -> int:
    """End the runs; a process that survives makes this fail and is named."""
    from symphony_charts.local import up
    from symphony_charts.local.runs import find_run, live_runs

    runs = live_runs() if args.all else [find_run(args.experiment_name, live=True)]
    for one in [] if args.dry_run else runs:
        up.down(one)
    items = [{"name": one.experiment, "run": one.run_id} for one in runs]
    columns = [output.Column("EXPERIMENT", "name"), output.Column("RUN", "run")]
    output.print_items(args, "Run", items, columns, empty="nothing runs here")
    return 0
