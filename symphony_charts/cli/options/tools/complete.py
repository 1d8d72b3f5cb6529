"""The options of `symph __complete`."""

from __future__ import annotations

import argparse

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph __complete`."""
    parser.add_argument("what", choices=("experiments", "processes"))
    parser.add_argument("prefix", nargs="?", default="", help="only names that begin so")
