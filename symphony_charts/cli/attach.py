"""`symph attach`: the terminal of a running experiment."""

from __future__ import annotations

import argparse

from symphony_charts.cli import common

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph attach`."""
    common.add_experiment(parser)
    parser.add_argument("-p", "--process", metavar="PROCESS", help="begin with the pane of this process")
    common.add_examples(parser, "symph attach ring", "symph attach integrate -p team-a/lead")


def run(args: argparse.Namespace) -> int:
    """Become a tmux client of the experiment's own server; detach with C-b d."""
    import sys

    from symphony_charts.adapters import tmux
    from symphony_charts.cluster.local_store import find_run, find_slots
    from symphony_charts.errors import UsageError

    found = find_run(args.experiment_name, live=True)
    if args.process:
        tmux.select(found.socket, find_slots(found, args.process)[0])
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("attach needs a terminal", next=f"symph logs -f {found.experiment}")
    tmux.attach(found.socket)
    return 0
