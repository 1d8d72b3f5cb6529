"""The options of `symph ps`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph ps`."""
    common.add_experiment(parser)
    parser.add_argument("-w", "--watch", action="store_true", help="show every change until the experiment has ended")
    common.add_backend(parser)
    common.add_output(parser)
    common.add_examples(parser, "symph ps", "symph ps ring -o json", "symph ps -w rl --on kube")
