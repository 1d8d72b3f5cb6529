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
    common.add_examples(
        parser, "symph attach ring", "symph attach integrate -p team-a/lead", "symph attach rl -p agent/1"
    )
