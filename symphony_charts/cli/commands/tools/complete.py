"""`symph __complete`: names that completion scripts offer, one a line. It reads state files and starts nothing."""

from __future__ import annotations

import argparse
import re
import sys

from symphony_charts.local.completion_names import experiment_names, process_names

__all__ = ["run"]

# Shells expand what they are offered; names of ours hold nothing else, whatever stands in a folder.
_PLAIN = "[A-Za-z0-9][A-Za-z0-9._/-]*"


def run(args: argparse.Namespace) -> int:
    """Print the names; whatever is wrong with a run only leaves it out, since nobody reads errors at a prompt."""
    names = experiment_names() if args.what == "experiments" else process_names()
    sys.stdout.writelines(
        f"{name}\n" for name in sorted(names) if name.startswith(args.prefix) and re.fullmatch(_PLAIN, name)
    )
    return 0
