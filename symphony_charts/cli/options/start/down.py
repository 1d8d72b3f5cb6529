"""The options of `symph down`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph down`."""
    common.add_experiment(parser)
    parser.add_argument("--all", action="store_true", help="every experiment that runs here")
    parser.add_argument(
        "--lost", action="store_true", help="note that a run which nobody here can see is over, and signal nothing"
    )
    common.add_output(parser, ("table", "json", "yaml", "name"))
    common.add_yes(parser)
    common.add_dry_run(parser)
    common.add_examples(parser, "symph down ring", "symph down --all", "symph down ring --lost")
