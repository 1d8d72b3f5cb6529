"""The options of `symph import`."""

from __future__ import annotations

import argparse
from typing import Any

from symphony_charts.cli.options import common
from symphony_charts.system.entry_points import entry_points

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph import`."""
    formats = parser.add_subparsers(dest="format", metavar="FORMAT", required=True)
    examples: list[str] = []
    for name, entry in entry_points("symph.importers").items():
        module: Any = entry.load()
        summary = getattr(module, "SUMMARY", "") or " ".join((module.__doc__ or f"by {entry.package}").split())
        one = formats.add_parser(name, help=summary, description=_description(module, summary))
        one.set_defaults(importer=module)
        if not hasattr(module, "main"):
            _add_source(one)
        if hasattr(module, "configure"):
            module.configure(one)
        if own := getattr(module, "EXAMPLES", ()):
            common.add_examples(one, *own)
            examples.append(own[0])
    common.add_examples(parser, *examples)


def _description(module: Any, summary: str) -> str | None:
    if hasattr(module, "main"):
        return None
    return f"Import {summary}." if hasattr(module, "SUMMARY") else summary


def _add_source(parser: argparse.ArgumentParser) -> None:
    """Add what every format takes."""
    parser.add_argument("source", metavar="SOURCE", help="the file; `-` is stdin")
    parser.add_argument(
        "--to", dest="file", metavar="FILE", default="", help="write the experiment to it, not to stdout"
    )
    parser.add_argument(
        "-o", "--output", choices=("json", "yaml"), default="", help="print the experiment with the report"
    )
    parser.add_argument("--strict", action="store_true", help="fail (1) and write nothing if anything is lost")
    common.add_dry_run(parser, "report what would be written and write nothing")
