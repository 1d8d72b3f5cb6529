"""The options of `symph collect`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph collect`."""
    common.add_experiment(parser)
    parser.add_argument(
        "--path", metavar="PATH", action="append", default=[], help="also this file or folder of each process"
    )
    parser.add_argument(
        "-p", "--process", metavar="PROCESS", action="append", default=[], help="only of these (default: of all)"
    )
    parser.add_argument("--to", metavar="FOLDER", default=None, help="where to (default: ./EXPERIMENT-RUN)")
    common.add_backend(parser)
    common.add_output(parser, ("table", "json", "yaml"))
    common.add_examples(parser, "symph collect rl", "symph collect rl --path /results -p learner --to out --on kube")
