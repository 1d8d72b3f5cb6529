"""`symph run` on this machine: `up`, and then its lines until its end."""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

from symphony_charts.cli import output
from symphony_charts.cli.commands.start.foreground import stay
from symphony_charts.cli.commands.start.run_output import follow, left_running, say_end
from symphony_charts.cli.commands.start.up_run import fail_if_failed, follow_up, start
from symphony_charts.cli.commands.tools.local_volumes import say_what_is_kept
from symphony_charts.cli.local_specs import spec_here
from symphony_charts.cli.rates import keep_rate
from symphony_charts.local import up as local_run
from symphony_charts.local.backend import LocalWatcher
from symphony_charts.local.rate import cost_of
from symphony_charts.local.supervisor.launcher import SupervisorProcess

__all__ = ["run_here", "run_there"]


def run_here(args: argparse.Namespace, spare: SupervisorProcess | None, began: float) -> int:
    """Start it under the supervisor `spare`; its exit status, or 0 where it is left running."""
    args.backend, args.wait, args.watch = "tmux", False, []
    spec, started = start(args, spare)
    if started is None:
        return 0
    if args.detach:
        return follow_up(args, spec, started, time.monotonic() - (time.time() - began))
    plan, name = started.plan(), started.experiment
    for text in plan["notes"]:
        output.warn(text)
    count = len(plan["processes"])
    took = f"{count} {'process' if count == 1 else 'processes'} up in {time.time() - began:.2f} s"
    output.note(f"{name}   {took}   ctrl-c: leave or end it   symph attach {name}")
    # Of a run that was there already, what it wrote so far has been seen.
    since = began if started.state()["started"] < began else None
    follower = follow(args, LocalWatcher(), name, run=started.run_id, since=since)

    def wait() -> int:
        # Its lines come already while the plan is made, which takes a moment.
        keep_rate(args, started, spec)
        return local_run.wait(started)

    status, is_over = stay(name, follower.start, wait, lambda: local_run.down(started))
    if not is_over:
        left_running(args, name)
        return status
    last = follower.wait()
    if last is not None:
        last = replace(last, cost=cost_of(started, last.seconds))
    say_end(args, last, name, status, began)
    say_what_is_kept(started)
    if status < 128 or last is None or last.phase == "failed":
        fail_if_failed(spec, started, plan, has_shown_lines=True)
    return status


def run_there(args: argparse.Namespace) -> int:
    """Start it on a backend that another package adds, which says what becomes of it."""
    spec = spec_here(args)
    cluster = args.symphony.cluster_for(args)
    cluster.start(spec.experiment, folder=spec.path.parent, pins=spec.pins, force=args.force, dry_run=args.dry_run)
    return 0
