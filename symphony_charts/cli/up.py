"""`symph up`: start an experiment on this machine."""

from __future__ import annotations

import argparse
import contextlib
import time

from symphony_charts.cli import error_report, launch, options, specs
from symphony_charts.errors import UsageError
from symphony_charts.local import reload, tmux_client, values
from symphony_charts.local.supervisor import launcher
from symphony_charts.placement import report
from symphony_charts.system import user_folders

# `launch` takes 190 ms, during which the supervisor starts; it needs the others, 130 ms, for values, prices and errors.
LATE = (launch, specs, values, report, error_report)


def configure(parser: argparse.ArgumentParser) -> None:
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


def run(args: argparse.Namespace) -> int:
    """Start the experiment and print where; with --wait wait for its end; with --watch follow its files."""
    user_folders.refuse_elsewhere()
    if args.watch and (args.wait or args.dry_run):
        raise UsageError("--watch stays until it is interrupted", next="leave --wait or --dry-run out")
    for text in args.watch:
        # Refuse a path that cannot be watched before anything starts.
        reload.parse_watched(text)
    args.process, args.timestamps = [], False
    if not args.dry_run:
        tmux_client.need_tmux()
    began = time.monotonic()
    with contextlib.nullcontext() if args.dry_run else contextlib.closing(launcher.SupervisorProcess()) as spare:
        spec, started = launch.start(args, spare)
    return launch.follow_up(args, spec, started, began) if started else 0
