"""`symph events`: what happened to an experiment."""

from __future__ import annotations

import argparse
import json
import sys

from symphony_charts.cli import experiments, output
from symphony_charts.cli.commands.look.describe import EVENT_COLUMNS, event_items

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Print them, the oldest first."""
    watcher = experiments.watcher_of(args)
    name = experiments.find_experiment(args, watcher)
    if not args.follow:
        items = event_items(list(watcher.events(name)))
        output.print_items(args, "Event", items, EVENT_COLUMNS, empty=f"nothing is known to have happened to {name}")
        return 0
    for event in watcher.events(name, follow=True):
        (item,) = event_items([event])
        if args.output == "json":
            output.line(json.dumps(item, ensure_ascii=False))
        else:
            output.line("  ".join(column.cell(item) for column in EVENT_COLUMNS))
        sys.stdout.flush()
    return 0
