"""`symph switch-experiment`: the experiment that verbs mean when they name none."""

from __future__ import annotations

import argparse

from symphony_charts.cli import output
from symphony_charts.cli.commands.watch import watching
from symphony_charts.cli.options import common

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph switch-experiment`."""
    common.add_experiment(parser)
    parser.add_argument("-f", "--force", action="store_true", help="take the name as it is, whether or not it runs")
    watching.add_target(parser)
    common.add_examples(parser, "symph switch-experiment rl", "symph se", "symph e rl --on kube")


def run(args: argparse.Namespace) -> int:
    """Choose one, or print which is chosen. The kubeconfig is not touched."""
    from symphony_charts.backend.current_experiment import current_of, set_current

    watcher = watching.watcher_of(args)
    if args.experiment_name is None:
        output.line(current_of(watcher))
        return 0
    name = args.experiment_name if args.force else watching.find_experiment(args, watcher)
    set_current(watcher.place, name)
    output.line(name)
    return 0
