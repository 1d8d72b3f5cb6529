"""The options of verbs that install or look at Helm releases: which cluster, what is installed, how long to wait."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common, times
from symphony_charts.cli.options.values import add_values

__all__ = ["add_source", "add_target", "add_waiting", "seconds"]


def add_target(parser: argparse.ArgumentParser) -> None:
    """Add `-n/--namespace`, `--context` and `--kubeconfig`."""
    common.add_cluster(parser, "the namespace (default: the spec's, else the context's)")


def add_source(parser: argparse.ArgumentParser) -> None:
    """Add what is installed, its name, and the values over its own."""
    text = "experiment file, its folder or `-` for stdin; chart folder or .tgz archive (default: ./experiment.yaml)"
    parser.add_argument("source", metavar="SPEC|CHART", nargs="?", type=common.spec_of, default=".", help=text)
    parser.add_argument("--name", default=None, help="the release (default: the experiment's name)")
    add_values(parser)
    common.add_spec_changes(parser)
    common.add_placement(parser)


def add_waiting(parser: argparse.ArgumentParser) -> None:
    """Add `--wait`, `--wait-for-jobs` and `--timeout`."""
    parser.add_argument(
        "--wait", action="store_true", help="return when all is ready or has finished; fail when a Job fails"
    )
    parser.add_argument("--wait-for-jobs", action="store_true", help="the same, and every Job has finished")
    parser.add_argument(
        "--timeout", type=seconds, default=300.0, metavar="TIME", help="for helm and for waiting: 90, 90s, 5m (default)"
    )


def seconds(text: str) -> float:
    """``90``, ``90s``, ``5m`` or ``1h`` in seconds, wrong usage otherwise: helm knows no days."""
    if text.endswith("d"):
        raise ValueError(f"{text!r} is no time")
    return times.seconds(text)
