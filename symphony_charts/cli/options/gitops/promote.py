"""The options of `symph promote`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common, repository

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph promote`."""
    repository.add_named(parser)
    parser.add_argument("--from", metavar="ENV", dest="before", required=True, help="the environment that runs it")
    parser.add_argument("--to", metavar="ENV", dest="after", required=True, help="the environment that shall run it")
    parser.add_argument("--version", metavar="V", default=None, help="only if the first environment runs this version")
    parser.add_argument(
        "--copy-values", action="store_true", help="take the environment's values along (default: keep those of --to)"
    )
    repository.add_repository(parser)
    repository.add_change_options(parser)
    common.add_examples(
        parser,
        "symph promote rl --from dev --to prod",
        "symph promote rl --from dev --to prod --version 0.2.0 --expect 0.1.3 --dry-run",
        "symph promote rl --from dev --to prod --branch promote-rl      # for a review",
    )
