"""The options of `symph restart`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph restart`."""
    common.add_experiment(parser, positional=False)
    text = "which ones (default: all); after them the experiment may stand"
    parser.add_argument("process", nargs="*", metavar="PROCESS", help=text)
    common.add_output(parser, ("table", "json", "yaml", "name"))
    common.add_yes(parser)
    common.add_dry_run(parser)
    common.add_examples(
        parser, "symph restart", "symph restart learner rl", "symph restart learner team-a/agent-0 -e rl"
    )
