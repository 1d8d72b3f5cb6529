"""The options of `symph plan`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common
from symphony_charts.cli.options.values import add_values

__all__ = ["configure"]


def _hours(text: str) -> float:
    hours = float(text)
    if not 0 < hours < 1e6:
        raise ValueError(text)
    return hours


def _trials(text: str) -> int:
    trials = int(text)
    if trials < 1:
        raise ValueError(text)
    return trials


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph plan`."""
    common.add_specs(parser, many=False)
    parser.add_argument(
        "--pools",
        metavar="FILE",
        action="append",
        default=[],
        help="node pools: a Terraform file, plan or state, gcloud's or kubectl's output, a pools.yaml;"
        " may be repeated (default: the spec's placement.pools, else the project's)",
    )
    parser.add_argument(
        "--var", metavar="KEY=VALUE", action="append", default=[], help="a Terraform variable; may be repeated"
    )
    common.add_system(parser)
    add_values(parser)
    parser.add_argument(
        "--hours", metavar="H", type=_hours, default=None, help="say what it costs to run for so many hours"
    )
    parser.add_argument(
        "--trials", metavar="N", type=_trials, default=1, help="with --hours: that many runs, as a sweep makes them"
    )
    common.add_output(parser, ("table", "wide", "json", "yaml"))
    parser.add_argument("--explain", metavar="PROCESS", default=None, help="why this pool, and why not the others")
    parser.add_argument("--svg", metavar="FILE", default=None, help="draw the nodes with their pods")
    common.add_examples(
        parser,
        "symph plan experiment.yaml --pools cluster.tf.json",
        "symph plan experiment.yaml --pools pools.yaml --explain learner",
        "kubectl get nodes,pods,daemonsets -A -o json > live.json; symph plan experiment.yaml --pools live.json",
        "symph plan experiment.yaml --pools pools.yaml --svg plan.svg",
        "symph plan experiment.yaml --pools pools.yaml --hours 12 --trials 8",
        "symph plan experiment.yaml --pools pools.yaml --system cpu=470m,memory=774Mi",
    )
