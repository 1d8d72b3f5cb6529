"""The options of `symph config`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph config`."""
    text = "only this setting, and those below it: team, defaults.namespace, environments.dev"
    parser.add_argument("key", metavar="KEY", nargs="?", default="", help=text)
    common.add_output(parser)
    common.add_examples(parser, "symph config", "symph config environments.dev", "symph config defaults -o json")
