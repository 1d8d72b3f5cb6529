"""The options of `symph delete-batch`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph delete-batch`."""
    text = "a regular expression that fits the whole name; quote it"
    parser.add_argument("experiment_names", metavar="PATTERN", nargs="+", help=text)
    common.add_backend(parser)
    common.add_output(parser, ("table", "json", "yaml", "name"))
    common.add_yes(parser)
    parser.add_argument("-f", "--force", action="store_true", help="the same as --yes")
    common.add_volumes(parser)
    common.add_dry_run(parser)
    common.add_examples(parser, "symph delete-batch 'sweep-.*' --dry-run", "symph db 'rl-[0-9]+' --yes --on kube")
