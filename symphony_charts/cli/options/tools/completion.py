"""The options of `symph completion`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.options import common

__all__ = ["configure"]

_SHELLS = ("bash", "zsh", "fish", "tcsh")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph completion`."""
    parser.add_argument("shell", choices=_SHELLS, help="the shell to complete in")
    common.add_examples(
        parser,
        'eval "$(symph completion bash)"',
        "symph completion zsh > ~/.zfunc/_symph",
        "symph completion fish > ~/.config/fish/completions/symph.fish",
    )
