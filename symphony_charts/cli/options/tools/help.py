"""The options of `symph help`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph help`."""
    text = "a verb, and an action below it (default: the table of all verbs)"
    parser.add_argument("words", metavar="VERB", nargs="*", help=text)
    parser.add_argument("--man", action="store_true", help="as a manual page, for man")
    common.add_examples(
        parser, "symph help", "symph help up", "symph help gitops lint", "symph help up --man | man -l -"
    )
