"""The options of `symph schema`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph schema`."""
    parser.add_argument("--install-hint", action="store_true", help="say how to make an editor use the schema")
    parser.add_argument("--settings", action="store_true", help="the schema of .symph.yaml in place of an experiment's")
    common.add_examples(
        parser,
        "symph schema > experiment.schema.json",
        "symph schema --settings > settings.schema.json",
        "symph schema --install-hint",
    )
