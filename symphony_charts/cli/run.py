"""`symph run`: start an experiment, print its output, and exit with its status."""

from __future__ import annotations

import argparse
import contextlib
import time

from symphony_charts.cli import error_report, launch, options, run_kube, specs
from symphony_charts.cli.defaults import typed
from symphony_charts.errors import UsageError
from symphony_charts.local import reload, tmux_client, values
from symphony_charts.local.supervisor import launcher
from symphony_charts.placement import report
from symphony_charts.system import user_folders

# The client of Kubernetes takes 100 ms. Reading and planning takes 190 ms, during which the supervisor starts.
# `launch` needs the others, 130 ms, only for values, prices and errors.
LATE = (run_kube, launch, specs, values, report, error_report)


def configure(parser: argparse.ArgumentParser) -> None:
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


def run(args: argparse.Namespace) -> int:
    """Start the experiment and wait for its end; `--detach` returns at once."""
    began = time.time()
    flags = options.cluster_flags(args)
    if flags and typed(args, "on") == "tmux":
        raise UsageError(f"--{flags[0]} means a cluster, --on tmux this machine", next="leave one out")
    backend = options.backend_of(args)
    if args.watch and (flags or backend != "tmux" or args.detach or args.dry_run):
        raise UsageError("--watch stays beside an experiment of this machine", next="leave it or the other option out")
    for text in args.watch:
        # Refuse a path that cannot be watched before anything starts.
        reload.parse_watched(text)
    if flags or backend == "kube":
        return run_kube.run_kube(args, began)
    is_here = backend == "tmux"
    if is_here:
        user_folders.refuse_elsewhere()
    if is_here and not args.dry_run:
        tmux_client.need_tmux()
    with (
        contextlib.nullcontext()
        if args.dry_run or not is_here
        else contextlib.closing(launcher.SupervisorProcess()) as spare
    ):
        return launch.run_here(args, spare, began) if is_here else launch.run_there(args)
