"""`symph use`: the experiment that verbs mean when they name none."""

from __future__ import annotations

import argparse

from symphony_charts.backend.current_experiment import set_current
from symphony_charts.cli import experiments, output

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Choose one, or print which is chosen. The kubeconfig is not touched."""
    watcher = experiments.watcher_of(args)
    if args.experiment_name is None:
        output.line(experiments.find_experiment(args, watcher))
        return 0
    name = args.experiment_name if args.force else experiments.find_experiment(args, watcher)
    set_current(watcher.place, name)
    output.line(name)
    return 0
