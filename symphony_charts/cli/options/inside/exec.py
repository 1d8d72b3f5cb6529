"""The options of `symph exec`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph exec`."""
    common.add_component(parser)
    common.add_experiment(parser)
    parser.add_argument("-T", "--no-tty", action="store_true", help="no terminal, even where there is one")
    common.add_backend(parser)
    common.add_examples(
        parser, "symph exec learner -- nvidia-smi", "symph exec agent/3 rl --on kube -- sh -c 'ls /tmp'"
    )
