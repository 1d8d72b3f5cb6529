"""The options of `symph top`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common, times

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph top`."""
    common.add_experiment(parser)
    parser.add_argument("-1", "--once", action="store_true", help="print once; without a terminal that is the default")
    parser.add_argument(
        "--interval",
        metavar="TIME",
        type=times.seconds,
        default=None,
        help="from look to look (default: 0.5s; plain: 2s)",
    )
    parser.add_argument("--plain", action="store_true", help="a plain table, without keys, also where textual is there")
    common.add_backend(parser)
    common.add_output(parser, ("table", "json", "yaml"))
    common.add_examples(parser, "symph top", "symph top rl --on kube", "symph top rl --once -o json")
