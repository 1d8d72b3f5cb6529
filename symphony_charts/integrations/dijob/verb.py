"""Options of `symph import dijob`; imports only light modules."""

from __future__ import annotations

import argparse
from typing import Any

from symphony_charts.cli import options

SUMMARY = "a DIJob"
EXAMPLES = ("symph import dijob dijob-qbert.yaml --kind jobset > experiment.yaml",)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--job", default="", metavar="NAME", help="the one to import out of several")
    options.add_workload_kind(parser)


def run(source: Any, args: argparse.Namespace) -> Any:
    # Late import: it takes 100 ms, too slow for `--help`.
    from symphony_charts.integrations.dijob.importer import import_dijob

    return import_dijob(source, args.job, args.kind or "dijob")
