"""The options of `symph use`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph use`."""
    common.add_experiment(parser)
    common.add_force(parser, "take the name as it is, whether or not it runs")
    common.add_backend(parser)
    common.add_examples(parser, "symph use rl", "symph use", "symph use rl --on kube")
