"""`symph delete-batch`: end all experiments whose names fit a pattern."""

from __future__ import annotations

import argparse
import re

from symphony_charts.cli import output
from symphony_charts.cli.commands.watch import watching
from symphony_charts.cli.options import common

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph delete-batch`."""
    text = "a regular expression that fits the whole name; quote it"
    parser.add_argument("patterns", metavar="PATTERN", nargs="+", help=text)
    watching.add_target(parser)
    common.add_output(parser, ("table", "json", "yaml", "name"))
    common.add_yes(parser)
    parser.add_argument("-f", "--force", action="store_true", help="the same as --yes")
    common.add_dry_run(parser)
    common.add_examples(parser, "symph delete-batch 'sweep-.*' --dry-run", "symph db 'rl-[0-9]+' --yes --on kube")


def run(args: argparse.Namespace) -> int:
    """List what fits, ask, remove it. Only experiments of ours can fit."""
    from symphony_charts.cli.commands.watch.delete import delete_all
    from symphony_charts.errors import NotFound

    watcher = watching.watcher_of(args)
    patterns = [_compiled(text) for text in args.patterns]
    every = sorted({one.name for one in watcher.experiments(ended=True)})
    names = [name for name in every if any(pattern.fullmatch(name) for pattern in patterns)]
    if not names:
        begun = [name for name in every if any(pattern.match(name) for pattern in patterns)]
        hint = f"patterns fit whole names; to mean {', '.join(begun)} add .*" if begun else "symph ls -a lists them"
        raise NotFound(f"no experiment fits {', '.join(args.patterns)}", next=hint)
    output.note(f"{len(names)} of {len(every)} experiments fit: {', '.join(names)}")
    return delete_all(args, watcher, names)


def _compiled(text: str) -> re.Pattern[str]:
    from symphony_charts.errors import UsageError

    try:
        return re.compile(text)
    except re.error as error:
        raise UsageError(f'"{text}" is no regular expression: {error}') from error
