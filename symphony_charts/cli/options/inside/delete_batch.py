"""The options of `symph delete-batch`, Symphony's name for `symph rm --match`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common
from symphony_charts.cli.options.inside.rm import add_removal

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph delete-batch`."""
    text = "a regular expression that fits the whole name; quote it"
    parser.add_argument("experiment_names", metavar="PATTERN", nargs="+", help=text)
    add_removal(parser)
    common.add_examples(parser, "symph rm --match 'sweep-.*' --dry-run", "symph rm --match 'rl-[0-9]+' --yes --on kube")
