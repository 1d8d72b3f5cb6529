"""Experiments on this machine, in tmux."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from symphony_charts.cluster.cluster import Cluster
from symphony_charts.cluster.folder import save_experiment
from symphony_charts.spec.model import Experiment

__all__ = ["TmuxCluster"]


class TmuxCluster(Cluster):
    """This machine: a private tmux server for each experiment, a window for each pod, a pane for each process."""

    def __init__(self, server_name: str | None = None, *, preamble_cmds: str | Iterable[str] | None = None) -> None:
        super().__init__(preamble_cmds=preamble_cmds)
        self.server_name = server_name

    def start(self, experiment: Experiment, *, force: bool = False, dry_run: bool = False) -> object:
        """Save the experiment if that is configured, and start it; with `dry_run` print the plan."""
        run = import_module("symphony_charts.cluster.local_run")
        if not dry_run:
            save_experiment(experiment, force=force)
        return run.launch(experiment, force=force, dry_run=dry_run)
