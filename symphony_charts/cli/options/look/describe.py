"""The options of `symph describe`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph describe`."""
    common.add_experiment(parser)
    common.add_backend(parser)
    common.add_output(parser, ("table", "json", "yaml", "name"), headers=False)
    common.add_examples(parser, "symph describe rl", "symph describe rl --on kube -o json")
