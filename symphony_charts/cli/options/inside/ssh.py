"""The options of `symph ssh`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph ssh`."""
    common.add_component(parser)
    common.add_experiment(parser)
    common.add_backend(parser)
    common.add_examples(parser, "symph ssh learner", "echo nvidia-smi | symph ssh learner rl --on kube")
