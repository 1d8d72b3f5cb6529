"""The options of `symph retire`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common, repository

__all__ = ["configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph retire`."""
    repository.add_named(parser)
    repository.add_env(parser)
    repository.add_repository(parser)
    repository.add_change_options(parser)
    common.add_yes(parser)
    common.add_examples(
        parser,
        "symph retire rl --env dev            # its pointer goes, and with it what runs; the charts stay",
        "symph retire rl --env dev --expect 0.2.0 --yes",
    )
