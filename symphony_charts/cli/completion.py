"""`symph completion`: tab completion for shells."""

from __future__ import annotations

import argparse
import sys

from symphony_charts.cli import common

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph completion`."""
    parser.add_argument("shell", choices=("bash", "zsh", "tcsh"), help="the shell to complete in")
    common.add_examples(parser, 'eval "$(symph completion bash)"', "symph completion zsh > ~/.zfunc/_symph")


def run(args: argparse.Namespace) -> int:
    """Print a script that completes verbs and options; it starts no program of ours at the prompt."""
    import shtab

    args.symphony.load_all()
    sys.stdout.write(shtab.complete(args.symphony.master_parser, shell=args.shell))
    return 0
