"""The options of `symph publish`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common, repository
from symphony_charts.cli.options.values import add_values

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph publish`."""
    common.add_specs(parser)
    parser.add_argument("--version", metavar="V", default=None, help="the chart's version (default: by what changed)")
    add_values(parser)
    repository.add_publish_options(parser)
    repository.add_change_options(parser)
    common.add_placement(parser)
    common.add_examples(
        parser,
        "symph publish rl.yaml --env dev",
        "symph publish experiments/*.yaml --env dev           # one commit",
        "symph publish rl.yaml --env dev --env-set groups.agent.replicas=32",
        "symph publish rl.yaml --env dev --branch rl-0.2      # a branch for review",
        "symph publish rl.yaml --env dev --dry-run -o markdown",
    )
