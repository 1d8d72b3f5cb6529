"""Say hello to an experiment."""

from __future__ import annotations

import argparse


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("name", metavar="EXPERIMENT")


def run(args: argparse.Namespace) -> int:
    """Do it; the answer is the exit status."""
    print(f"hello {args.name}")
    return 0
