"""The options of `symph validate`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common
from symphony_charts.cli.options.values import add_values

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph validate`."""
    common.add_specs(parser)
    common.add_output(parser, common.FINDING_FORMATS, headers=False)
    parser.add_argument("--strict", action="store_true", help="fail on warnings too")
    parser.add_argument(
        "--kube-version",
        metavar="1.NN",
        default=None,
        help="Kubernetes to check for (default: 1.34, or one that has all kinds)",
    )
    parser.add_argument("--helm", action="store_true", help="ask the helm on this machine as well")
    add_values(parser)
    common.add_placement(parser)
    common.add_examples(
        parser,
        "symph validate experiment.yaml",
        "symph validate experiments/*.yaml --strict",
        "symph validate experiment.yaml -o sarif > findings.sarif",
    )
