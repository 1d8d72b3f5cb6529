"""The options of `symph events`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph events`."""
    common.add_experiment(parser)
    parser.add_argument("-f", "--follow", action="store_true", help="go on until the experiment has ended")
    common.add_backend(parser)
    common.add_output(parser, ("table", "json", "yaml"))
    common.add_examples(parser, "symph events rl --on kube", "symph events -f rl --on kube")
