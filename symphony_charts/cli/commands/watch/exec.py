"""`symph exec`: run a command where a process runs."""

from __future__ import annotations

import argparse
import sys

from symphony_charts.cli.commands.watch import watching
from symphony_charts.cli.options import common

__all__ = ["configure", "execute", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph exec`."""
    common.add_component(parser)
    common.add_experiment(parser)
    parser.add_argument("-T", "--no-tty", action="store_true", help="no terminal, even where there is one")
    watching.add_target(parser)
    common.add_examples(
        parser, "symph exec learner -- nvidia-smi", "symph exec agent/3 rl --on kube -- sh -c 'ls /tmp'"
    )


def run(args: argparse.Namespace) -> int:
    """Run what follows ``--``; its exit status is ours."""
    from symphony_charts.errors import UsageError

    if not args.has_remainder or not args.remainder:
        raise UsageError("the command to run follows --", next="symph exec PROCESS -- COMMAND")
    return execute(args, args.remainder)


def execute(args: argparse.Namespace, command: list[str]) -> int:
    """Run `command` where `args.component_name` runs; the exit status. A terminal is used where this is one."""
    watcher = watching.watcher_of(args)
    status = watching.find_status(args, watcher)
    instance = watching.one_instance(status, args.component_name)
    has_terminal = sys.stdin.isatty() and sys.stdout.isatty() and not getattr(args, "no_tty", False)
    sys.stdout.flush()
    return watcher.exec(status.name, instance, command, tty=has_terminal)
