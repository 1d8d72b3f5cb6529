"""The options of `symph ls`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph ls`."""
    parser.add_argument("experiment_name", metavar="EXPERIMENT", nargs="?", help="only those with this in their names")
    parser.add_argument("-a", "--all", action="store_true", help="also the last run of experiments that have ended")
    parser.add_argument("--sweep", metavar="NAME", default=None, help="only the trials of this sweep, each by itself")
    parser.add_argument(
        "--phase", metavar="PHASE", action="append", default=[], help="only those that are so: running, failed, ..."
    )
    common.add_selector(parser)
    common.add_backend(parser)
    common.add_output(parser)
    common.add_examples(
        parser,
        "symph ls",
        "symph ls -a -o wide",
        "symph ls -a --sweep descent --phase failed",
        "symph ls --on kube",
        "symph ls -n ml -o name",
        "symph ls -l team=rl,stage!=old",
    )
