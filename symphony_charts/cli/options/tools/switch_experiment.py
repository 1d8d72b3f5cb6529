"""The options of `symph switch-experiment`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph switch-experiment`."""
    common.add_experiment(parser)
    parser.add_argument("-f", "--force", action="store_true", help="take the name as it is, whether or not it runs")
    common.add_backend(parser)
    common.add_examples(parser, "symph switch-experiment rl", "symph se", "symph e rl --on kube")
