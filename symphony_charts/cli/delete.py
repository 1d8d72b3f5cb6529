"""`symph delete`: end an experiment on this machine and forget its runs, logs included."""

from __future__ import annotations

import argparse

from symphony_charts.cli import common, output

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph delete`."""
    common.add_experiment(parser)
    common.add_output(parser, ("table", "json", "yaml", "name"))
    common.add_yes(parser)
    parser.add_argument("-f", "--force", dest="yes", action="store_true", help="the same as --yes")
    common.add_dry_run(parser)
    common.add_examples(parser, "symph delete ring", "symph delete ring --yes")


def run(args: argparse.Namespace) -> int:
    """Ask, end what runs, remove what is kept."""
    import shutil

    from symphony_charts.cluster import local_run
    from symphony_charts.cluster.local_store import find_run, runs_of

    name = find_run(args.experiment_name).experiment
    runs = runs_of(name)
    if not args.dry_run:
        output.confirm(args, f"Delete {name} with {len(runs)} run(s) and their logs?")
        for one in runs:
            local_run.down(one)
        shutil.rmtree(runs[0].folder.parent)
    items = [{"name": name, "run": one.run_id} for one in runs]
    output.print_items(args, "Run", items, [output.Column("EXPERIMENT", "name"), output.Column("RUN", "run")])
    return 0
