"""`symph up`: start an experiment on this machine."""

from __future__ import annotations

import argparse
import contextlib
import time

from symphony_charts.cli import output
from symphony_charts.cli.options import common
from symphony_charts.cli.options.values import add_values, spec_here

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph up`."""
    common.add_specs(parser, many=False)
    parser.add_argument("--wait", action="store_true", help="wait until the run is over; exit with its status")
    parser.add_argument(
        "--watch",
        metavar="PATH[:PROCESS,...]",
        action="append",
        default=[],
        help="stay, and restart processes (default: all) when a file at or below PATH changes; may be repeated",
    )
    parser.add_argument(
        "--ignore", metavar="PATTERN", action="append", default=[], help="files and folders that --watch leaves out"
    )
    parser.add_argument(
        "--force", action="store_true", help="end it first if it runs already, instead of restarting what changed"
    )
    parser.add_argument(
        "--share-gpus", action="store_true", help="let processes have the same GPUs in turn, and not hold them alone"
    )
    add_values(parser)
    common.add_output(parser, ("table", "json", "yaml"))
    common.add_dry_run(parser, "print what would be started, without values of variables")
    common.add_examples(
        parser,
        "symph up experiment.yaml",
        "symph up experiment.yaml --wait      # the exit status is that of the first process that failed",
        "symph up experiment.yaml             # again: starts again only what has changed",
        "symph up experiment.yaml --watch agent.py:agent --watch lib --ignore '*.ckpt'",
        "symph up experiment.yaml --set groups.agent.replicas=8",
        "symph up experiment.yaml --dry-run",
    )


def run(args: argparse.Namespace) -> int:
    """Start it, say where, and with --wait how it ended; with --watch follow its files until interrupted."""
    from symphony_charts.errors import UsageError
    from symphony_charts.local.supervisor.launcher import NewSupervisor
    from symphony_charts.local.tmux_client import need_tmux

    if args.watch and (args.wait or args.dry_run):
        raise UsageError("--watch stays until it is interrupted", next="leave --wait or --dry-run out")
    if args.watch:
        from symphony_charts.cli.commands.run.up_watch import check

        check(args)
    if not args.dry_run:
        need_tmux()
    began = time.monotonic()
    with contextlib.nullcontext() if args.dry_run else contextlib.closing(NewSupervisor.ahead()) as spare:
        # What follows takes long to import; meanwhile the supervisor does the same.
        from symphony_charts.local import up as local_run
        from symphony_charts.spec.services import allocate

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
    if started is None:
        return 0
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
        from symphony_charts.cli.commands.run.up_watch import follow

        return follow(args, started, spec.path)
    if not args.wait:
        output.next_step(f"symph process {name}", f"symph logs -f {name}", f"symph attach {name}", f"symph down {name}")
        return 0
    status = local_run.wait(started)
    _fail_if_failed(args.spec, started.state(), plan)
    return status


def _fail_if_failed(spec: str, state: dict[str, object], plan: dict[str, object]) -> None:
    """Raise RunFailed, whose exit status is that of the process, naming it and where it is declared."""
    from symphony_charts.errors import CheckFailed
    from symphony_charts.local.supervisor.policy import describe_status

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
