"""`symph run` on this machine: `up`, and then its lines until its end."""

from __future__ import annotations

import argparse
import time

from symphony_charts.cli import output
from symphony_charts.cli.commands.start.foreground import stay
from symphony_charts.cli.commands.start.run_output import follow, left_running, say_end
from symphony_charts.cli.commands.start.up_run import fail_if_failed, follow_up, start
from symphony_charts.cli.commands.tools.local_volumes import say_what_is_kept
from symphony_charts.cli.local_specs import spec_here
from symphony_charts.cli.values import prepared_of
from symphony_charts.errors import SymphError
from symphony_charts.local import up as local_run
from symphony_charts.local.backend import LocalWatcher
from symphony_charts.local.supervisor.launcher import SupervisorProcess
from symphony_charts.placement.plan import Plan
from symphony_charts.settings.project import settings_of_spec
from symphony_charts.spec.files import SpecFile

__all__ = ["run_here", "run_there"]


def run_here(args: argparse.Namespace, spare: SupervisorProcess | None, began: float) -> int:
    """Start it under the supervisor `spare`; its exit status, or 0 where it is left running."""
    args.backend, args.wait, args.watch = "tmux", False, []
    spec, started = start(args, spare, is_new=True)
    if started is None:
        return 0
    if args.detach:
        return follow_up(args, spec, started, time.monotonic() - (time.time() - began))
    plan, name = started.plan(), started.experiment
    for text in plan.notes:
        output.warn(text)
    count = len(plan.processes)
    took = f"{count} {'process' if count == 1 else 'processes'} up in {time.time() - began:.2f} s"
    output.note(f"{name}   {took}   ctrl-c: leave or end it   symph attach {name}")
    follower = follow(args, LocalWatcher(), name, run=started.run_id)
    priced: Plan | None = None

    def wait() -> int:
        # The plan takes a moment, in which the follower prints lines already.
        nonlocal priced
        priced = _plan_of(args, spec)
        return local_run.wait(started)

    status, is_over = stay(name, follower.start, wait, lambda: local_run.down(started))
    if not is_over:
        left_running(args, name)
        return status
    last = follower.wait()
    say_end(args, last, name, status, began, priced)
    say_what_is_kept(started)
    if status < 128 or last is None or last.phase == "failed":
        fail_if_failed(spec, started, plan, has_shown_lines=True)
    return status


def _plan_of(args: argparse.Namespace, spec: SpecFile) -> Plan | None:
    """Return the plan on the node pools of the options, the spec or the project; None without pools.

    It only prices the run, so an error in it is a note.
    """
    try:
        if args.pools or spec.experiment.placement.pools or settings_of_spec(spec.path).pools:
            return prepared_of(args, spec, force=True).plan
    except SymphError as error:
        output.note(f"note: the price of {spec.experiment.name} is unknown: {error.what}")
    return None


def run_there(args: argparse.Namespace) -> int:
    """Start it on a backend that another package adds, which says what becomes of it."""
    spec = spec_here(args)
    cluster = args.symphony.cluster_for(args)
    cluster.start(spec.experiment, folder=spec.path.parent, pins=spec.pins, force=args.force, dry_run=args.dry_run)
    return 0
