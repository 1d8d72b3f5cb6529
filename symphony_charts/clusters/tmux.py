"""`TmuxCluster` runs experiments on this machine, in tmux."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from symphony_charts.backend.protocol import Watcher
from symphony_charts.clusters.base import Addresses, Cluster, Launched
from symphony_charts.errors import Conflict
from symphony_charts.local import up
from symphony_charts.local.backend import LocalWatcher
from symphony_charts.local.machine.machine import plan_here
from symphony_charts.local.runs import Run, find_run
from symphony_charts.settings.user import save_experiment
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import ProcessRef, allocate

__all__ = ["TmuxCluster"]


class TmuxCluster(Cluster):
    """This machine: a private tmux server for each experiment, a window for each pod, a pane for each process.

    `server_name` is Symphony's parameter; it has no effect because servers are private, and a launch prints a note.
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
        """Save the experiment if an experiment folder is configured, and start it; with `dry_run` print the plan."""
        self.note_server(experiment)
        services = allocate(experiment, pins)
        if not dry_run and not force and experiment.name in self.watcher.names():
            # Check before any change, also to the saved experiment.
            what = f'experiment "{experiment.name}" is already running'
            raise Conflict(what, next=f"symph down {experiment.name}, or launch(exp, force=True)")
        if not dry_run:
            save_experiment(experiment, force=force)
        return up.up(experiment, services, folder=folder, force=force, dry_run=dry_run)

    def note_server(self, experiment: Experiment) -> None:
        """Print a note that the named tmux server does not exist, with the commands to use."""
        if self.server_name is not None:
            name = experiment.name
            what = f"note: tmux server {self.server_name!r} does not exist: each experiment has a private one"
            sys.stderr.write(f"{what}; `symph attach {name}`, not `tmux -L`; `symph ls`, not `tmux ls`\n")

    def addresses(self, launched: Launched, /) -> Addresses:
        """Return each service's address: that of the first replica that binds it, now or once started."""
        services = allocate(launched.experiment, launched.pins)
        if isinstance(launched.started, Run):
            plan = launched.started.plan()
        else:
            plan = plan_here(launched.experiment, services, launched.folder, run_id="dry-run")
        hosts = {
            ProcessRef(process.group or process.process, process.process): process.address
            for process in plan.processes
            if process.index == 0
        }
        ports = {**plan.ports, **{name: moved[0] for name, moved in plan.moved.items()}}
        return {one.name: {"host": hosts[one.listener], "port": ports[one.name]} for one in services}

    @property
    def watcher(self) -> Watcher:
        return LocalWatcher()

    def delete(self, experiment_name: str) -> None:
        """End an experiment and all its processes, keeping the logs; raises NotFound unless it runs here."""
        up.down(find_run(experiment_name, live=True))
