"""`symph up`: start an experiment on this machine."""

from __future__ import annotations

import argparse
import contextlib
import time

from symphony_charts.errors import UsageError
from symphony_charts.local.reload import parse_watched
from symphony_charts.local.supervisor.launcher import SupervisorProcess
from symphony_charts.local.tmux_client import need_tmux
from symphony_charts.system.platforms import refuse_elsewhere

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Start it, say where, and with --wait how it ended; with --watch follow its files until interrupted."""
    refuse_elsewhere()
    if args.watch and (args.wait or args.dry_run):
        raise UsageError("--watch stays until it is interrupted", next="leave --wait or --dry-run out")
    for text in args.watch:
        # A path that cannot be watched is refused before anything is started.
        parse_watched(text)
    if not args.dry_run:
        need_tmux()
    began = time.monotonic()
    with contextlib.nullcontext() if args.dry_run else contextlib.closing(SupervisorProcess.ahead()) as spare:
        # What reads and plans experiments takes 190 ms to import; meanwhile the supervisor does the same.
        from symphony_charts.cli.commands.start.up_run import follow_up, start

        spec, started = start(args, spare)
    return follow_up(args, spec, started, began) if started else 0
