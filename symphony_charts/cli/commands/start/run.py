"""`symph run`: start an experiment here or on a cluster, print what it does, and end with its status."""

from __future__ import annotations

import argparse
import contextlib
import time

from symphony_charts.cli.options import common
from symphony_charts.cli.options.defaults import typed
from symphony_charts.errors import UsageError
from symphony_charts.local.supervisor.launcher import SupervisorProcess
from symphony_charts.local.tmux_client import need_tmux
from symphony_charts.system.platforms import refuse_elsewhere

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Start it and stay until its end; `--detach` returns at once."""
    began = time.time()
    if args.no_color:
        args.color = "never"
    flags = common.cluster_flags(args)
    if flags and typed(args, "on") == "tmux":
        raise UsageError(f"--{flags[0]} means a cluster, --on tmux this machine", next="leave one out")
    backend = common.backend_of(args)
    if flags or backend == "kube":
        # The client of Kubernetes takes 100 ms to import, which no run on this machine has.
        from symphony_charts.cli.commands.start.run_kube import run_kube

        return run_kube(args, began)
    is_here = backend == "tmux"
    if is_here:
        refuse_elsewhere()
    if is_here and not args.dry_run:
        need_tmux()
    with (
        contextlib.nullcontext()
        if args.dry_run or not is_here
        else contextlib.closing(SupervisorProcess.ahead()) as spare
    ):
        # As in `symph up`: meanwhile the supervisor imports the same.
        from symphony_charts.cli.commands.start.run_here import run_here, run_there

        return run_here(args, spare, began) if is_here else run_there(args)
