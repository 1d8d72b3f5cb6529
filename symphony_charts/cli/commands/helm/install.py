"""`symph install`: an experiment as a Helm release, by hand."""

from __future__ import annotations

import argparse

from symphony_charts.cli.commands.helm.release import send

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Check every object on the cluster, push the declared secrets, install, and wait if that is asked for."""
    return send(args, is_upgrade=False)
