"""The options of `symph version`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph version`."""
    common.add_output(parser, ("table", "json", "yaml"), headers=False)
    common.add_examples(parser, "symph version", "symph version -o json")
