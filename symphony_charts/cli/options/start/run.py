"""The options of `symph run`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common
from symphony_charts.cli.options.values import add_values

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph run`."""
    common.add_specs(parser, many=False)
    parser.add_argument("-d", "--detach", action="store_true", help="return at once and leave it running")
    parser.add_argument(
        "-p",
        "--process",
        metavar="PROCESS",
        action="append",
        default=[],
        help="print only the lines of this process; may be repeated",
    )
    parser.add_argument("--timestamps", action="store_true", help="begin each line with its time")
    parser.add_argument("--no-color", action="store_true", help="the same as --color never")
    parser.add_argument("--force", action="store_true", help="end it first if it runs already")
    parser.add_argument(
        "--share-gpus", action="store_true", help="here: let processes have the same GPUs in turn, not each alone"
    )
    common.add_backend(parser, is_one=True)
    add_values(parser)
    common.add_placement(parser)
    common.add_output(parser, ("table", "json"), headers=False)
    common.add_dry_run(parser, "print what would be started, and start nothing")
    common.add_examples(
        parser,
        "symph run experiment.yaml",
        "symph run experiment.yaml -p learner --timestamps",
        "symph run experiment.yaml --on kube -n ml --set groups.agent.replicas=8",
        "symph run experiment.yaml -o json | jq -r 'select(.line) | .line'",
    )
