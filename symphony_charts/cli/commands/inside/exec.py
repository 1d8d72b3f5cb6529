"""`symph exec`: run a command where a process runs."""

from __future__ import annotations

import argparse
import sys

from symphony_charts.cli import experiments
from symphony_charts.errors import UsageError

__all__ = ["execute", "run"]


def run(args: argparse.Namespace) -> int:
    """Run what follows ``--``; its exit status is ours."""
    if not args.has_remainder or not args.remainder:
        raise UsageError("the command to run follows --", next="symph exec PROCESS -- COMMAND")
    return execute(args, args.remainder)


def execute(args: argparse.Namespace, command: list[str]) -> int:
    """Run `command` where `args.component_name` runs; the exit status. A terminal is used where this is one."""
    watcher = experiments.watcher_of(args)
    status = experiments.find_status(args, watcher)
    instance = experiments.one_instance(status, args.component_name)
    has_terminal = sys.stdin.isatty() and sys.stdout.isatty() and not getattr(args, "no_tty", False)
    sys.stdout.flush()
    return watcher.exec(status.name, instance, command, tty=has_terminal)
