"""The options of `symph delete`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph delete`."""
    common.add_experiment(parser)
    common.add_backend(parser)
    common.add_output(parser, ("table", "json", "yaml", "name"))
    common.add_yes(parser)
    parser.add_argument("-f", "--force", action="store_true", help="do not ask, and take the name exactly as it is")
    common.add_volumes(parser)
    common.add_dry_run(parser)
    common.add_examples(
        parser,
        "symph delete ring",
        "symph delete ring --yes",
        "symph delete rl --volumes   # what its claims hold here, too",
        "symph d rl --on kube --dry-run",
        "symph delete dijob/cart -n rl   # a DIJob that kubectl made",
        "symph delete experiment.yaml   # the experiment that the file describes",
    )
