"""`symph run`: start an experiment here or on a cluster, print what it does, and end with its status."""

from __future__ import annotations

import argparse
import contextlib
import time

from symphony_charts.cli.options import common
from symphony_charts.errors import UsageError
from symphony_charts.local.supervisor.launcher import SupervisorProcess
from symphony_charts.local.tmux_client import need_tmux

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Start it and stay until its end; `--detach` returns at once."""
    began = time.time()
    if args.no_color:
        args.color = "never"
    flags = common.cluster_flags(args)
    if flags and args.on == "tmux":
        raise UsageError(f"--{flags[0]} means a cluster, --on tmux this machine", next="leave one out")
    if flags or common.backend_of(args) == "kube":
        # The client of Kubernetes takes 100 ms to import, which no run on this machine has.
        from symphony_charts.cli.commands.start.run_kube import run_kube

        return run_kube(args, began)
    if not args.dry_run:
        need_tmux()
    with contextlib.nullcontext() if args.dry_run else contextlib.closing(SupervisorProcess.ahead()) as spare:
        # As in `symph up`: meanwhile the supervisor imports the same.
        from symphony_charts.cli.commands.start.run_here import run_here

        return run_here(args, spare, began)
