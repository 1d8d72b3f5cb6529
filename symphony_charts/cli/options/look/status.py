"""The options of `symph status`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common, release, repository

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph status`."""
    parser.add_argument(
        "experiment_name", metavar="EXPERIMENT", nargs="?", help="its name, or team/name (default: all)"
    )
    repository.add_env(parser, text="only this environment")
    repository.add_repository(parser)
    release.add_target(parser)
    common.add_output(parser)
    common.add_examples(
        parser, "symph status", "symph status rl", "symph status --env prod -o wide", "symph status rl -n ml"
    )
