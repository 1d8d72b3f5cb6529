"""`symph version`: which symph this is, and by which Python it runs."""

from __future__ import annotations

import argparse
import platform

from symphony_charts.cli import output
from symphony_charts.version import __version__

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Print the line of `--version`, or a record."""
    record = {"version": __version__, "python": platform.python_version()}
    output.print_record(args, "Version", record, f"symphony-charts {__version__}")
    return 0
