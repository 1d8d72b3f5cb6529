"""`symph wait`: return when an experiment has reached a condition."""

from __future__ import annotations

import argparse

from symphony_charts.backend.wait import wait_until
from symphony_charts.cli import experiments, output
from symphony_charts.cli.commands.look.describe import record_of
from symphony_charts.errors import NotFound

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Wait; the exit status is 1 when the condition cannot be reached any more, 6 when the time is over."""
    watcher = experiments.watcher_of(args)
    try:
        name = experiments.find_experiment(args, watcher)
    except NotFound:
        if args.condition not in ("deleted", "delete", "gone") or not args.experiment_name:
            raise
        name = args.experiment_name
    status = wait_until(watcher, name, args.condition, process=args.process, timeout_s=args.timeout)
    if args.output == "name":
        output.line(name)
        return 0
    record = record_of(status) if status else {"name": name, "phase": "deleted"}
    reached = args.condition if args.process or not status else status.phase
    output.print_record(args, "Experiment", record, f"{args.process or name} {reached}")
    return 0
