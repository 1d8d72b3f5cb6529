"""`symph import dijob`: its options. Imports nothing heavy."""

from __future__ import annotations

import argparse
from typing import Any

from symphony_charts.cli import options

SUMMARY = "a DIJob"
EXAMPLES = ("symph import dijob dijob-qbert.yaml --kind jobset > experiment.yaml",)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this format."""
    parser.add_argument("--job", default="", metavar="NAME", help="the one to import out of several")
    options.add_workload_kind(parser)


def run(source: Any, args: argparse.Namespace) -> Any:
    """Return the experiment of a DIJob."""
    # 100 ms, which help has not.
    from symphony_charts.integrations.dijob.importer import import_dijob

    return import_dijob(source, args.job, args.kind or "dijob")
