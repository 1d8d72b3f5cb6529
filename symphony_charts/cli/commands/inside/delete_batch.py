"""`symph delete-batch`: end all experiments whose names fit a pattern."""

from __future__ import annotations

import argparse
import re

from symphony_charts.cli import experiments, output
from symphony_charts.cli.commands.inside.delete import delete_all
from symphony_charts.errors import NotFound, UsageError

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """List what fits, ask, remove it. Only experiments of ours can fit."""
    watcher = experiments.watcher_of(args)
    patterns = [_compiled(text) for text in args.experiment_names]
    every = sorted({experiment.name for experiment in watcher.experiments(ended=True)})
    names = [name for name in every if any(pattern.fullmatch(name) for pattern in patterns)]
    if not names:
        begun = [name for name in every if any(pattern.match(name) for pattern in patterns)]
        hint = f"patterns fit whole names; to mean {', '.join(begun)} add .*" if begun else "symph ls -a lists them"
        raise NotFound(f"no experiment fits {', '.join(args.experiment_names)}", next=hint)
    output.note(f"{len(names)} of {len(every)} experiments fit: {', '.join(names)}")
    return delete_all(args, watcher, names)


def _compiled(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise UsageError(f'"{text}" is no regular expression: {error}') from error
