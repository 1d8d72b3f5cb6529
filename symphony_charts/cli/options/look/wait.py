"""The options of `symph wait`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common, times

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph wait`."""
    common.add_experiment(parser)
    parser.add_argument(
        "--for",
        dest="condition",
        metavar="CONDITION",
        default="succeeded",
        help="running, ready, succeeded (default), failed, ended or deleted",
    )
    parser.add_argument("-p", "--process", metavar="PROCESS", default="", help="of this process alone")
    parser.add_argument("--timeout", metavar="TIME", type=times.seconds, default=None, help="90, 90s, 5m, 1h")
    common.add_backend(parser)
    common.add_output(parser, ("table", "json", "yaml", "name"), headers=False)
    common.add_examples(
        parser, "symph wait rl --for=ready --timeout 5m", "symph wait rl -p learner && symph collect rl"
    )
