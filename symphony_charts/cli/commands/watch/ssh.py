"""`symph ssh`: a shell where a process runs."""

from __future__ import annotations

import argparse

from symphony_charts.cli.commands.watch import watching
from symphony_charts.cli.options import common

__all__ = ["configure", "run"]

# A login shell, where there is one; images of today often have but `sh`.
_SHELL = ["sh", "-c", "command -v bash >/dev/null && exec bash -l; exec sh -l"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph ssh`."""
    common.add_component(parser)
    common.add_experiment(parser)
    watching.add_target(parser)
    common.add_examples(parser, "symph ssh learner", "echo nvidia-smi | symph ssh learner rl --on kube")


def run(args: argparse.Namespace) -> int:
    """Open it on this terminal, or let it read this input; its exit status is ours."""
    from symphony_charts.cli.commands.watch.exec import execute

    return execute(args, _SHELL)
