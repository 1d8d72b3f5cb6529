"""`spec_here` reads the spec of a command line for this machine."""

from __future__ import annotations

import argparse

from symphony_charts.cli.values import user_values_of
from symphony_charts.local.values import under_values
from symphony_charts.spec import files as specfile
from symphony_charts.spec.files import SpecFile

__all__ = ["spec_here"]


def spec_here(args: argparse.Namespace) -> SpecFile:
    """The spec as this machine runs it: with the command line's values in it. Raises SpecError."""
    return under_values(specfile.read(args.spec, args.spec_set), user_values_of(args))
