"""Options of `symph import dijob`."""

from __future__ import annotations

import argparse
from typing import Any

from symphony_charts.cli import options
from symphony_charts.integrations.dijob import importer

SUMMARY = "a DIJob"
EXAMPLES = ("symph import dijob dijob-qbert.yaml --kind jobset > experiment.yaml",)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--job", default="", metavar="NAME", help="the one to import out of several")
    options.add_workload_kind(parser)


def run(source: Any, args: argparse.Namespace) -> Any:
    return importer.import_dijob(source, args.job, args.kind or "dijob")
