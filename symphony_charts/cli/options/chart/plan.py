"""The options of `symph plan`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common
from symphony_charts.cli.options.values import add_values

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph plan`."""
    common.add_specs(parser, many=False)
    parser.add_argument(
        "--pools",
        metavar="FILE",
        action="append",
        default=[],
        help="node pools: a Terraform file, plan or state, gcloud's or kubectl's output, a pools.yaml;"
        " may be repeated (default: the spec's placement.pools)",
    )
    parser.add_argument(
        "--var", metavar="KEY=VALUE", action="append", default=[], help="a Terraform variable; may be repeated"
    )
    common.add_system(parser)
    add_values(parser)
    common.add_output(parser, ("table", "wide", "json", "yaml"))
    parser.add_argument("--explain", metavar="PROCESS", default=None, help="why this pool, and why not the others")
    parser.add_argument(
        "--svg", metavar="FILE", default=None, help="draw the nodes with their pods; the services beside"
    )
    parser.add_argument("--html", metavar="FILE", default=None, help="write one page with tables and both pictures")
    common.add_examples(
        parser,
        "symph plan experiment.yaml --pools cluster.tf.json",
        "symph plan experiment.yaml --pools pools.yaml --explain learner",
        "kubectl get nodes,pods,daemonsets -A -o json > live.json; symph plan experiment.yaml --pools live.json",
        "symph plan experiment.yaml --pools pools.yaml --html plan.html",
    )
