"""`start` brings up the experiment of `symph up`; `follow_up` says how it is, and waits or watches where asked to."""

from __future__ import annotations

import argparse
import time

from symphony_charts.cli import output
from symphony_charts.cli.commands.start.up_wait import wait_and_tell
from symphony_charts.cli.commands.start.up_watch import follow
from symphony_charts.cli.values import spec_here
from symphony_charts.errors import CheckFailed
from symphony_charts.local import up as local_run
from symphony_charts.local.runs import Run
from symphony_charts.local.supervisor.launcher import SupervisorProcess
from symphony_charts.local.supervisor.policy import describe_status
from symphony_charts.spec.files import SpecFile
from symphony_charts.spec.services import allocate

__all__ = ["follow_up", "start"]


def start(args: argparse.Namespace, spare: SupervisorProcess | None) -> tuple[SpecFile, Run | None]:
    """The spec, and its run under the supervisor `spare`; with `--dry-run` no run, and what it would be is printed."""
    spec = spec_here(args)
    started = local_run.up(
        spec.experiment,
        allocate(spec.experiment, spec.pins),
        folder=spec.path.parent,
        force=args.force,
        dry_run=args.dry_run,
        share_gpus=args.share_gpus,
        spare=spare,
    )
    return spec, started


def follow_up(args: argparse.Namespace, spec: SpecFile, started: Run, began: float) -> int:
    """Say where the run is, with --wait how it ended; with --watch follow its files until interrupted."""
    plan, name = started.plan(), started.experiment
    for text in plan["notes"]:
        output.warn(text)
    count = len(plan["processes"])
    record = {
        "name": name,
        "run": started.run_id,
        "address": plan["base_address"],
        "processes": count,
        "ports": {**plan["ports"], **{service: ports[0] for service, ports in plan["moved"].items()}},
    }
    limits = sorted({limit["by"] for process in plan["processes"] for limit in process["limits"]})
    record |= {"limits": limits, "commits": started.state().get("commits", {})}
    took = time.monotonic() - began
    plural = "process" if count == 1 else "processes"
    limited = f"   limits by {' and '.join(limits)}" if limits else ""
    text = f"{name}   {plan['base_address']}   {count} {plural} up in {took:.2f} s{limited}"
    output.print_record(args, "Run", record, text)
    if args.watch:
        return follow(args, started, spec.path)
    if not args.wait:
        output.next_step(f"symph process {name}", f"symph logs -f {name}", f"symph attach {name}", f"symph down {name}")
        return 0
    status = wait_and_tell(started)
    _fail_if_failed(args.spec, started.state(), plan)
    return status


def _fail_if_failed(spec: str, state: dict[str, object], plan: dict[str, object]) -> None:
    """Raise RunFailed, whose exit status is that of the process, naming it and where it is declared."""
    if state.get("reason") == "stopped":
        raise CheckFailed("the run was stopped before its end")
    failed = state.get("failed")
    if not isinstance(failed, dict):
        return
    processes = state["processes"]
    assert isinstance(processes, list)  # noqa: S101 - state files are written by us alone
    restarts = processes[failed["slot"]]["restarts"]
    again = f" after {restarts} restarts" if restarts else ""
    planned = plan["processes"]
    assert isinstance(planned, list)  # noqa: S101
    where = f"{spec}, {planned[failed['slot']]['spec_path']}"
    limit = f": {failed['limit']}" if failed.get("limit") else ""
    error = CheckFailed(
        f'process "{failed["name"]}" failed ({describe_status(failed["status"])}){again}{limit}',
        where,
        f"symph logs {failed['name']} {state['experiment']} --tail 50",
    )
    error.exit_code = failed["status"]
    raise error
