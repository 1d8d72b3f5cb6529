"""Options of `symph export dijob`."""

from __future__ import annotations

import argparse
from typing import Any

from symphony_charts.integrations.dijob import export

SUMMARY = "a DIJob with its configuration, for kubectl and DI-orchestrator"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--operator",
        choices=("v0", "v1.0", "v1.1.0", "v1.1"),
        default=None,
        help="the version of DI-orchestrator; v1.1 is v1.1.1 and later (default: the spec's workload.dijob.operator)",
    )


def run(experiment: Any, args: argparse.Namespace) -> Any:
    """Return the DIJob with its ConfigMap before it and its Services after it, and notes."""
    return export.dijob_objects(experiment, args.operator)
