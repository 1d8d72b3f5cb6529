"""`start` brings up the experiment of `symph up`; `follow_up` says how it is, and waits or watches where asked to."""

from __future__ import annotations

import argparse
import json
import time

from symphony_charts.cli import output
from symphony_charts.cli.commands.start.up_watch import follow
from symphony_charts.cli.commands.tools.local_volumes import say_what_is_kept
from symphony_charts.cli.following import Follower
from symphony_charts.cli.local_specs import spec_here
from symphony_charts.cli.log_lines import LinePrinter
from symphony_charts.errors import CheckFailed, ToolFailed
from symphony_charts.kinds.leftovers import failure_difference
from symphony_charts.local import up as local_run
from symphony_charts.local.backend import LocalWatcher
from symphony_charts.local.log_tail import tail_of
from symphony_charts.local.plan.records import LocalPlan, PlannedProcess
from symphony_charts.local.run_state import Failure
from symphony_charts.local.runs import Run
from symphony_charts.local.supervisor.launcher import SupervisorProcess
from symphony_charts.local.supervisor.policy import describe_status
from symphony_charts.spec.files import SpecFile
from symphony_charts.spec.services import allocate

__all__ = ["fail_if_failed", "follow_up", "start"]

# So many lines of a process that failed are shown.
_LAST_LINES = 5


def start(
    args: argparse.Namespace, spare: SupervisorProcess | None, *, is_new: bool = False
) -> tuple[SpecFile, Run | None]:
    """Return the spec, and its run under the supervisor `spare`; with `--dry-run` print the plan, and return no run.

    With `is_new` an experiment that runs already is a Conflict.
    """
    spec = spec_here(args)
    started = local_run.up(
        spec.experiment,
        allocate(spec.experiment, spec.pins),
        folder=spec.path.parent,
        force=args.force,
        dry_run=args.dry_run,
        share_gpus=args.share_gpus,
        is_new=is_new,
        spare=spare,
        show=lambda data, text: output.print_record(args, "Run", data, text.removesuffix("\n")),
    )
    return spec, started


def follow_up(args: argparse.Namespace, spec: SpecFile, started: Run, began: float) -> int:
    """Say where the run is, with --wait how it ended; with --watch follow its files until interrupted."""
    plan, name = started.plan(), started.experiment
    for text in plan.notes:
        output.warn(text)
    count = len(plan.processes)
    record = {
        "name": name,
        "run": started.run_id,
        "address": plan.base_address,
        "processes": count,
        "ports": {**plan.ports, **{service: ports[0] for service, ports in plan.moved.items()}},
    }
    limits = sorted({limit.by for process in plan.processes for limit in process.limits})
    record |= {"limits": limits, "commits": started.state().commits}
    took = time.monotonic() - began
    plural = "process" if count == 1 else "processes"
    limited = f"   limits by {' and '.join(limits)}" if limits else ""
    text = f"{name}   {plan.base_address}   {count} {plural} up in {took:.2f} s{limited}"
    output.print_record(args, "Run", record, text)
    if args.watch:
        return follow(args, started, spec.path)
    if not args.wait:
        output.next_step(f"symph ps {name}", f"symph logs -f {name}", f"symph attach {name}", f"symph down {name}")
        return 0
    names = [process.path for process in plan.processes]
    printer = LinePrinter(names, color=getattr(args, "color", None))
    follower = Follower(LocalWatcher(), name, printer, run=started.run_id)
    follower.start()
    status = local_run.wait(started)
    follower.wait()
    say_what_is_kept(started)
    fail_if_failed(spec, started, plan)
    return status


def fail_if_failed(spec: SpecFile, run: Run, plan: LocalPlan, *, has_shown_lines: bool = False) -> None:
    """Raise CheckFailed, whose exit status is that of the process, naming it and its place; it has the last words."""
    state = run.state()
    if state.reason == "stopped":
        raise CheckFailed("the run was stopped before its end")
    if state.cause:
        step = f"symph logs {run.experiment} --tail 50, then symph up {spec.path}"
        raise ToolFailed(f"the run failed: {state.cause}, so that its processes had no terminals any more", next=step)
    failed = state.failed
    if failed is None:
        return
    process, planned = state.processes[failed.slot], plan.processes[failed.slot]
    for line in () if has_shown_lines else tail_of(run.process_dir(failed.slot) / "log", _LAST_LINES):
        output.note(f"{process.path} | {line}")
    if planned.on_exit == "stop-all" and (text := failure_difference(spec.experiment)):
        output.note(f"note: {text}")
    again = f" after {process.restarts} restarts" if process.restarts else ""
    cause = failed.limit or process.unhealthy or ("command not found" if failed.status == 127 else "")
    why = f": {cause}" if cause else ""
    error = CheckFailed(
        f'process "{failed.name}" failed ({describe_status(failed.status)}){again}{why}',
        f"{spec.path}, {planned.spec_path}",
        _next_step(run, planned, failed),
    )
    error.exit_code = failed.status or 1
    raise error


def _next_step(run: Run, planned: PlannedProcess, failed: Failure) -> str:
    words = planned.argv[0].split()
    if failed.status == 127 and len(words) > 1:
        return f"write its words apart: command: {json.dumps(words)}"
    return f"symph logs {failed.name} {run.experiment} --tail 50"
