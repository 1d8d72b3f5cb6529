"""The options of `symph history`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common, release, repository

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph history`."""
    repository.add_named(parser)
    repository.add_env(parser)
    repository.add_repository(parser)
    release.add_target(parser)
    common.add_output(parser)
    common.add_examples(
        parser, "symph history rl --env prod", "symph history ml/rl --env prod -o json", "symph history rl -n ml"
    )
