"""The options of `symph status`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common, release, repository

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph status`."""
    parser.description = (
        "How experiments are here, on the clusters that .symph.yaml names by `context` (else the kubeconfig's current"
        " one) and in Git, and why one does not run. Exit 1: something has failed, drifted, or will not pass by itself."
    )
    parser.add_argument(
        "experiment_name", metavar="EXPERIMENT", nargs="?", help="its name, or team/name (default: all)"
    )
    repository.add_env(parser, text="only this environment")
    repository.add_repository(parser)
    release.add_target(parser)
    common.add_all_namespaces(parser)
    common.add_selector(parser)
    parser.add_argument("-w", "--watch", action="store_true", help="go on until nothing changes by itself any more")
    common.add_output(parser)
    common.add_examples(
        parser,
        "symph status",
        "symph status rl",
        "symph status rl --watch",
        "symph status --env prod -o wide",
        "symph status rl -n ml -o json",
        "symph status -l team=rl",
    )
