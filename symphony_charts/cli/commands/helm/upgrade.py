"""`symph upgrade`: let an installed release run another chart, or other values."""

from __future__ import annotations

import argparse

from symphony_charts.cli.commands.helm.release import send

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """The same steps as `symph install`; values of earlier revisions do not count."""
    return send(args, is_upgrade=True)
