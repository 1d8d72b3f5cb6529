"""The options of `symph attach`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph attach`."""
    common.add_experiment(parser)
    parser.add_argument("-p", "--process", metavar="PROCESS", help="begin with the pane of this process, or replica")
    parser.add_argument("--nested", action="store_true", help="attach within another tmux as well; C-b C-b d leaves")
    parser.add_argument(
        "--tile",
        metavar="PROCESS",
        nargs="*",
        default=None,
        help="what these processes write, side by side, with their states (default: all); also after their end",
    )
    parser.add_argument(
        "--into-current", action="store_true", help="with --tile: in a window of the tmux session you are in"
    )
    common.add_backend(parser)
    common.add_examples(
        parser,
        "symph attach ring",
        "symph attach integrate -p team-a/lead",
        "symph attach rl -p agent/1",
        "symph attach rl --tile",
        "symph attach rl --tile learner agent-0 agent-1 --into-current",
        "symph attach rl --tile --on kube -n ml",
    )
