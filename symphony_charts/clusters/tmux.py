"""`TmuxCluster` runs experiments on this machine, in tmux."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from symphony_charts.backend.protocol import Watcher
from symphony_charts.clusters.base import Cluster
from symphony_charts.errors import Conflict
from symphony_charts.local import up
from symphony_charts.local.backend import LocalWatcher
from symphony_charts.local.runs import find_run
from symphony_charts.settings.saved_experiments import save_experiment
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.services import allocate

__all__ = ["TmuxCluster"]


class TmuxCluster(Cluster):
    """This machine: a private tmux server for each experiment, a window for each pod, a pane for each process.

    `server_name` is Symphony's; servers are private here, so it changes nothing.
    """

    def __init__(self, server_name: str | None = None, *, preamble_cmds: str | Iterable[str] | None = None) -> None:
        super().__init__(preamble_cmds=preamble_cmds)
        self.server_name = server_name

    def start(
        self,
        experiment: Experiment,
        *,
        folder: Path,
        pins: Mapping[str, int],
        force: bool = False,
        dry_run: bool = False,
    ) -> object:
        """Save the experiment if that is configured, and start it; with `dry_run` print what would be started."""
        services = allocate(experiment, pins)
        if not dry_run and not force and experiment.name in self.watcher.names():
            # Before anything is touched, the saved experiment included.
            what = f'experiment "{experiment.name}" runs already'
            raise Conflict(what, next=f"symph down {experiment.name}, or launch(exp, force=True)")
        if not dry_run:
            save_experiment(experiment, force=force)
        return up.up(experiment, services, folder=folder, force=force, dry_run=dry_run)

    @property
    def watcher(self) -> Watcher:
        """What runs on this machine."""
        return LocalWatcher()

    def delete(self, experiment_name: str) -> None:
        """End an experiment and all its processes, keeping the logs; raises NotFound unless it runs here."""
        up.down(find_run(experiment_name, live=True))
