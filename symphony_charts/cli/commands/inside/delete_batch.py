"""`symph delete-batch` is Symphony's name for `symph rm --match`, with the patterns as plain words."""

from __future__ import annotations

import argparse

from symphony_charts.cli.commands.inside import rm

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Remove what fits."""
    args.experiment_name, args.match, args.selector = None, args.experiment_names, None
    return rm.run(args)
