"""`symph scp`: copy files from and to where a process runs."""

from __future__ import annotations

import argparse
import re

from symphony_charts.cli import output
from symphony_charts.cli.commands.watch import watching
from symphony_charts.cli.options import common

__all__ = ["configure", "parse_place", "run"]

# `process:`, `group/process:`, `process/2:` before a path; a local path with a colon is written ./a:b.
_REMOTE = re.compile(r"((?:[A-Za-z0-9][A-Za-z0-9_.-]*/){0,2}[A-Za-z0-9][A-Za-z0-9_.-]*)?:(.+)", re.S)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph scp`."""
    parser.add_argument("source", metavar="SOURCE", help="a path, or PROCESS:PATH")
    parser.add_argument("dest", metavar="DEST", help="a path, or PROCESS:PATH")
    common.add_experiment(parser)
    common.add_dry_run(parser)
    watching.add_target(parser)
    common.add_examples(
        parser, "symph scp learner:/results ./results", "symph cp config.yaml agent/0:/tmp/ rl --on kube"
    )


def run(args: argparse.Namespace) -> int:
    """Copy one file or folder; exactly one side names a process."""
    from pathlib import Path

    from symphony_charts.errors import UsageError

    source, dest = parse_place(args.source), parse_place(args.dest)
    if (source is None) == (dest is None):
        raise UsageError("exactly one side is PROCESS:PATH", next="symph scp learner:/results ./results")
    watcher = watching.watcher_of(args)
    status = watching.find_status(args, watcher)
    word, path = source or dest or ("", "")
    if not word:
        if len(status.instances) != 1:
            known = ", ".join(one.path for one in status.instances)
            raise UsageError("several processes run; name one before the colon", next=f"one of {known}")
        word = status.instances[0].path
    instance = watching.one_instance(status, word)
    if args.dry_run:
        output.note(f"would copy {args.source} to {args.dest} ({instance.path} of {status.name}); nothing was changed")
    elif source:
        watcher.copy_out(status.name, instance, path, Path(args.dest).expanduser())
    else:
        watcher.copy_in(status.name, instance, Path(args.source).expanduser(), path)
    return 0


def parse_place(text: str) -> tuple[str, str] | None:
    """The process (empty: the only one) and path of ``PROCESS:PATH``; None for a path of this machine."""
    found = _REMOTE.fullmatch(text)
    return (found[1] or "", found[2]) if found else None
