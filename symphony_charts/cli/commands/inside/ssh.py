"""`symph ssh`: a shell where a process runs."""

from __future__ import annotations

import argparse

from symphony_charts.cli.commands.inside.exec import execute

__all__ = ["run"]

# A login shell, where there is one; images of today often have but `sh`.
_SHELL = ["sh", "-c", "command -v bash >/dev/null && exec bash -l; exec sh -l"]


def run(args: argparse.Namespace) -> int:
    """Open it on this terminal, or let it read this input; its exit status is ours."""
    return execute(args, _SHELL)
