"""`symph wait`: return when an experiment has reached a condition."""

from __future__ import annotations

import argparse

from symphony_charts.cli import output
from symphony_charts.cli.commands.watch import watching
from symphony_charts.cli.options import common

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph wait`."""
    common.add_experiment(parser)
    parser.add_argument(
        "--for",
        dest="condition",
        metavar="CONDITION",
        default="succeeded",
        help="running, ready, succeeded (default), failed, ended or deleted",
    )
    parser.add_argument("-p", "--process", metavar="PROCESS", default="", help="of this process alone")
    parser.add_argument("--timeout", metavar="TIME", type=watching.seconds, default=None, help="90, 90s, 5m, 1h")
    watching.add_target(parser)
    common.add_output(parser, ("table", "json", "yaml", "name"), headers=False)
    common.add_examples(
        parser, "symph wait rl --for=ready --timeout 5m", "symph wait rl -p learner && symph collect rl"
    )


def run(args: argparse.Namespace) -> int:
    """Wait; the exit status is 1 when the condition cannot be reached any more, 6 when the time is over."""
    from symphony_charts.backend.wait import wait_until
    from symphony_charts.cli.commands.watch.describe import record_of
    from symphony_charts.errors import NotFound

    watcher = watching.watcher_of(args)
    try:
        name = watching.find_experiment(args, watcher)
    except NotFound:
        if args.condition not in ("deleted", "delete", "gone") or not args.experiment_name:
            raise
        name = args.experiment_name
    status = wait_until(watcher, name, args.condition, process=args.process, timeout_s=args.timeout)
    if args.output == "name":
        output.line(name)
        return 0
    record = record_of(status) if status else {"name": name, "phase": "deleted"}
    said = args.condition if args.process or not status else status.phase
    output.print_record(args, "Experiment", record, f"{args.process or name} {said}")
    return 0
