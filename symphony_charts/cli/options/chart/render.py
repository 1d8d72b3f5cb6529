"""The options of `symph render`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common
from symphony_charts.cli.options.values import add_values

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph render`."""
    common.add_specs(parser, many=False)
    common.add_output(parser, ("yaml", "json", "name"), default="yaml", headers=False)
    parser.add_argument("--release", metavar="NAME", default=None, help="the release (default: the experiment's name)")
    parser.add_argument("-n", "--namespace", default="default", help="its namespace, for --helm (default: default)")
    parser.add_argument("--no-tests", action="store_true", help="leave out the pod that `helm test` starts")
    parser.add_argument("--helm", action="store_true", help="let the helm on this machine render the chart")
    add_values(parser)
    common.add_examples(
        parser,
        "symph render experiment.yaml",
        "symph render experiment.yaml --set groups.agent.replicas=32 -o name",
        "symph render experiment.yaml --spec-set workload.kind=jobset",
        "symph render experiment.yaml | kubectl apply --server-side --dry-run=server -f -",
    )
