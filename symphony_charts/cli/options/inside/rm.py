"""The options of `symph rm`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common

__all__ = ["add_removal", "configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph rm`."""
    common.add_experiment(parser)
    parser.add_argument(
        "--match",
        metavar="PATTERN",
        action="append",
        default=[],
        help="all whose whole names this regular expression fits; quote it; may be repeated",
    )
    common.add_selector(parser)
    add_removal(parser)
    common.add_examples(
        parser,
        "symph rm ring",
        "symph rm ring --yes",
        "symph rm rl --volumes   # what its claims hold here, too",
        "symph rm rl --on kube --dry-run",
        "symph rm --match 'sweep-.*' --dry-run",
        "symph rm -l stage=old --dry-run",
        "symph rm dijob/cart -n rl   # a DIJob that kubectl made",
        "symph rm experiment.yaml   # the experiment that the file describes",
    )


def add_removal(parser: argparse.ArgumentParser) -> None:
    """Add where they run, and how they are removed."""
    common.add_backend(parser)
    common.add_output(parser, ("table", "json", "yaml", "name"))
    common.add_yes(parser)
    common.add_force(parser, "do not ask, and take the name exactly as it is")
    common.add_volumes(parser)
    common.add_dry_run_like_symphony(parser)
