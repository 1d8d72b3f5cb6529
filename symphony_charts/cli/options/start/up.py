"""The options of `symph up`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common
from symphony_charts.cli.options.values import add_values

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph up`."""
    common.add_specs(parser, many=False)
    parser.add_argument("-d", "--detach", action="store_true", help="return once it is up, as `up` always does")
    parser.add_argument("--wait", action="store_true", help="wait until the run is over; exit with its status")
    parser.add_argument(
        "--watch",
        metavar="PATH[:PROCESS,...]",
        action="append",
        default=[],
        help="stay, and restart processes (default: all) when a file at or below PATH changes; may be repeated",
    )
    parser.add_argument(
        "--ignore", metavar="PATTERN", action="append", default=[], help="files and folders that --watch leaves out"
    )
    parser.add_argument(
        "--force", action="store_true", help="end it first if it runs already, instead of restarting what changed"
    )
    parser.add_argument(
        "--share-gpus", action="store_true", help="let processes have the same GPUs in turn, and not hold them alone"
    )
    add_values(parser)
    common.add_output(parser, ("table", "json", "yaml"), headers=False)
    common.add_dry_run(parser, "print what would be started, without values of variables")
    common.add_examples(
        parser,
        "symph up experiment.yaml",
        "symph up experiment.yaml --wait      # the exit status is that of the first process that failed",
        "symph up experiment.yaml             # again: starts again only what has changed",
        "symph up experiment.yaml --watch agent.py:agent --watch lib --ignore '*.ckpt'",
        "symph up experiment.yaml --set groups.agent.replicas=8",
        "symph up experiment.yaml --spec-set processes.agent.cwd=/data",
        "symph up experiment.yaml --dry-run",
    )
