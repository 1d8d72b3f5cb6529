"""`symph cp`: copy files from and to where a process runs."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from symphony_charts.cli import experiments, output
from symphony_charts.errors import UsageError

__all__ = ["parse_place", "run"]

# `process:`, `group/process:`, `process/2:` before a path; a local path with a colon is written ./a:b.
_REMOTE = re.compile(r"((?:[A-Za-z0-9][A-Za-z0-9_.-]*/){0,2}[A-Za-z0-9][A-Za-z0-9_.-]*)?:(.+)", re.S)


def run(args: argparse.Namespace) -> int:
    """Copy one file or folder; exactly one side names a process."""
    source, dest = parse_place(args.src_file), parse_place(args.dest_file)
    if (source is None) == (dest is None):
        raise UsageError("exactly one side is PROCESS:PATH", next="symph cp learner:/results ./results")
    watcher = experiments.watcher_of(args)
    status = experiments.find_status(args, watcher)
    word, path = source or dest or ("", "")
    if not word:
        if len(status.instances) != 1:
            known = ", ".join(one.path for one in status.instances)
            raise UsageError("several processes run; name one before the colon", next=f"one of {known}")
        word = status.instances[0].path
    instance = experiments.one_instance(status, word)
    if args.dry_run:
        output.note(f"would copy {args.src_file} to {args.dest_file} ({instance.path} of {status.name})")
    elif source:
        watcher.copy_out(status.name, instance, path, Path(args.dest_file).expanduser())
    else:
        watcher.copy_in(status.name, instance, Path(args.src_file).expanduser(), path)
    return 0


def parse_place(text: str) -> tuple[str, str] | None:
    """The process (empty: the only one) and path of ``PROCESS:PATH``; None for a path of this machine."""
    found = _REMOTE.fullmatch(text)
    return (found[1] or "", found[2]) if found else None
