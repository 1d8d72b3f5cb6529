"""`symph help`: what `--help` prints after the same words."""

from __future__ import annotations

import argparse
import sys

from symphony_charts.cli.commands.tools.manual import manual_page, overview_page
from symphony_charts.cli.verbs import find_verb
from symphony_charts.errors import NotFound

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Print the page, or let a program print its own."""
    if args.man:
        sys.stdout.write(_manual(args))
        return 0
    status: int = args.symphony.main([*args.words, "--help"])
    return status


def _manual(args: argparse.Namespace) -> str:
    """The manual page of a verb, or of the command."""
    if not args.words:
        return overview_page()
    verb = find_verb(args.words[0])
    if verb is None or len(args.words) > 1:
        raise NotFound(f"there is no manual page symph-{'-'.join(args.words)}", next="symph help --man lists them")
    return manual_page(verb.name, args.symphony.get_subparser(verb.name))
