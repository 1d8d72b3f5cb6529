"""`symph run` and `symph up`: start an experiment, and follow it or return once it is up."""

from __future__ import annotations

import argparse
import contextlib
import time

from symphony_charts.cli import error_report, launch, options, run_kube, specs
from symphony_charts.errors import UsageError
from symphony_charts.local import reload, tmux_client, values
from symphony_charts.local.supervisor import launcher
from symphony_charts.placement import report
from symphony_charts.system import user_folders

# The client of Kubernetes takes 100 ms. `launch` takes 190 ms, during which the supervisor starts; it needs the others,
# 130 ms, only for values, prices and errors.
LATE = (run_kube, launch, specs, values, report, error_report)


def configure_run(parser: argparse.ArgumentParser) -> None:
    options.add_specs(parser, many=False)
    options.add_flag(parser, "-d", "--detach", help="return at once and leave it running")
    options.add_list(
        parser, "-p", "--process", metavar="PROCESS", help="print only the lines of this process; may be repeated"
    )
    options.add_flag(parser, "--timestamps", help="begin each line with its time")
    options.add_watch(parser)
    options.add_flag(parser, "--force", help="end a running one first")
    options.add_flag(parser, "--share-gpus", help="here: let several processes share the same GPUs")
    options.add_backend(parser, is_one=True)
    options.add_values(parser)
    options.add_placement(parser)
    options.add_output(parser, ("table", "json"), headers=False)
    options.add_dry_run(parser, "print what would be started, and start nothing")
    options.add_examples(
        parser,
        "symph run experiment.yaml",
        "symph run experiment.yaml -p learner --timestamps",
        "symph run experiment.yaml --watch agent.py:agent --watch lib",
        "symph run experiment.yaml --on kube -n ml --set groups.agent.replicas=8",
        "symph run experiment.yaml -o json | jq -r 'select(.line) | .line'",
    )


def run_run(args: argparse.Namespace) -> int:
    """Start the experiment and wait for its end; `--detach` returns at once."""
    began = time.time()
    backend = options.place_of(args)
    if args.watch and (backend != "tmux" or args.detach or args.dry_run):
        raise UsageError("--watch stays beside an experiment of this machine", next="leave it or the other option out")
    _check_watched(args)
    if backend == "kube":
        return run_kube.run_kube(args, began)
    if backend != "tmux":
        return launch.run_there(args)
    user_folders.refuse_elsewhere()
    with _supervisor(args) as spare:
        return launch.run_here(args, spare, began)


def _check_watched(args: argparse.Namespace) -> None:
    """Refuse a path that cannot be watched before anything starts. Raises NotFound."""
    for text in args.watch:
        reload.parse_watched(text)


def _supervisor(args: argparse.Namespace) -> contextlib.AbstractContextManager[launcher.SupervisorProcess | None]:
    """Start the supervisor while the spec is read; a dry run needs none. Raises ToolMissing without tmux."""
    if args.dry_run:
        return contextlib.nullcontext()
    tmux_client.need_tmux()
    return contextlib.closing(launcher.SupervisorProcess())


def configure_up(parser: argparse.ArgumentParser) -> None:
    options.add_specs(parser, many=False)
    options.add_flag(parser, "-d", "--detach", help="return once it is up (the default)")
    options.add_flag(parser, "--wait", help="wait until the run is over; exit with its status")
    options.add_watch(parser)
    options.add_flag(parser, "--force", help="end a running one first, instead of restarting what changed")
    options.add_flag(parser, "--share-gpus", help="let several processes share the same GPUs")
    options.add_values(parser)
    options.add_output(parser, ("table", "json", "yaml"), headers=False)
    options.add_dry_run(parser, "print what would be started, without values of variables")
    options.add_examples(
        parser,
        "symph up experiment.yaml",
        "symph up experiment.yaml --wait      # the exit status is that of the first process that failed",
        "symph up experiment.yaml             # again: starts again only what has changed",
        "symph up experiment.yaml --watch agent.py:agent --watch lib --ignore '*.ckpt'",
        "symph up experiment.yaml -E LR=0.1 --set groups.agent.replicas=8",
        "symph up experiment.yaml --spec-set processes.agent.cwd=/data",
        "symph up experiment.yaml --dry-run",
    )


def run_up(args: argparse.Namespace) -> int:
    """Start the experiment and print where; with --wait wait for its end; with --watch follow its files."""
    user_folders.refuse_elsewhere()
    if args.watch and (args.wait or args.dry_run):
        raise UsageError("--watch stays until it is interrupted", next="leave --wait or --dry-run out")
    _check_watched(args)
    args.process, args.timestamps = [], False
    began = time.monotonic()
    with _supervisor(args) as spare:
        spec, started = launch.start(args, spare)
    return launch.follow_up(args, spec, started, began) if started else 0
