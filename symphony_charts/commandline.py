"""Symphony's `symphony.commandline`: the parser that projects extend."""

from __future__ import annotations

from symphony_charts.cli.parser import SymphonyParser

__all__ = ["SymphonyParser"]
