"""The options of `symph import runopts`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph import runopts`."""
    parser.add_argument(
        "scheduler",
        nargs="?",
        metavar="SCHEDULER",
        choices=("kubernetes_mcad", "kubernetes", "symph"),
        help="only the options of this one (kubernetes_mcad, kubernetes, symph)",
    )
    common.add_output(parser)
    common.add_examples(
        parser,
        "symph import runopts",
        "symph import runopts kubernetes_mcad -o wide",
        "symph import torchx app.json --cfg namespace=ml,coscheduler_name=gang,priority=5",
    )
