"""The options of `symph ls`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph ls`."""
    parser.add_argument("experiment_name", metavar="EXPERIMENT", nargs="?", help="only those with this in their names")
    parser.add_argument("-a", "--all", action="store_true", help="also the last run of experiments that have ended")
    common.add_backend(parser)
    common.add_output(parser)
    common.add_examples(parser, "symph ls", "symph ls -a -o wide", "symph ls --on kube", "symph ls -n ml -o name")
