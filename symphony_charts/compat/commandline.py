"""Symphony's `symphony.commandline`."""

from __future__ import annotations

from symphony_charts.cli.parser import SymphonyParser

__all__ = ["SymphonyParser"]
