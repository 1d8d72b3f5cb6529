"""`symph events`: what happened to an experiment."""

from __future__ import annotations

import argparse
import sys

from symphony_charts.cli import output
from symphony_charts.cli.commands.watch import watching
from symphony_charts.cli.commands.watch.describe import EVENT_COLUMNS, event_items
from symphony_charts.cli.options import common

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph events`."""
    common.add_experiment(parser)
    parser.add_argument("-f", "--follow", action="store_true", help="go on until the experiment has ended")
    watching.add_target(parser)
    common.add_output(parser, ("table", "json", "yaml"))
    common.add_examples(parser, "symph events rl --on kube", "symph events -f rl --on kube")


def run(args: argparse.Namespace) -> int:
    """Print them, the oldest first."""
    watcher = watching.watcher_of(args)
    name = watching.find_experiment(args, watcher)
    if not args.follow:
        items = event_items(list(watcher.events(name)))
        output.print_items(args, "Event", items, EVENT_COLUMNS, empty=f"nothing is known to have happened to {name}")
        return 0
    for event in watcher.events(name, follow=True):
        (item,) = event_items([event])
        if args.output == "json":
            import json

            output.line(json.dumps(item, ensure_ascii=False))
        else:
            output.line("  ".join(column.cell(item) for column in EVENT_COLUMNS))
        sys.stdout.flush()
    return 0
