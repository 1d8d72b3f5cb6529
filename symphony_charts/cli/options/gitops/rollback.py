"""The options of `symph rollback`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common, release, repository

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph rollback`."""
    repository.add_named(parser)
    parser.add_argument(
        "--to", metavar="VERSION", default=None, help="the version, or the revision of a release (default: the last)"
    )
    repository.add_env(parser)
    repository.add_repository(parser)
    repository.add_change_options(parser)
    release.add_target(parser)
    parser.add_argument("--wait", action="store_true", help="a release: return when all is ready or has finished")
    parser.add_argument("--timeout", type=release.seconds, default=300.0, metavar="TIME", help="a release: default 5m")
    common.add_yes(parser)
    common.add_examples(
        parser,
        "symph rollback rl -n ml --to 3",
        "symph rollback rl --env prod",
        "symph rollback rl --env prod --to 0.1.3 --expect 0.2.0 --dry-run",
    )
