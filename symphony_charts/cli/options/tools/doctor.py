"""The options of `symph doctor`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common, release

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph doctor`."""
    parser.add_argument(
        "--for",
        dest="needs",
        metavar="USE",
        action="append",
        default=[],
        choices=("tmux", "helm", "git", "kubectl"),
        help="fail unless this can be used: tmux, helm, git or kubectl; may be repeated",
    )
    parser.add_argument(
        "--cluster",
        action="store_true",
        help="look at a cluster instead: the kinds of workload, gangs and queues that it serves",
    )
    release.add_target(parser)
    common.add_output(parser, ("table", "wide", "json", "yaml", "name"))
    common.add_examples(parser, "symph doctor", "symph doctor --for tmux --for helm", "symph doctor --cluster -n team")
