"""Experiments on this machine, in tmux."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from symphony_charts.cluster.cluster import Cluster
from symphony_charts.cluster.folder import save_experiment
from symphony_charts.cluster.local_store import find_run, find_slots, live_runs, process_items
from symphony_charts.network.services import allocate
from symphony_charts.spec.model import Experiment

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
        # Starting brings tmux and the wrapper along, which those who only ask for states do without.
        from symphony_charts.cluster import local_run

        services = allocate(experiment, pins)
        if not dry_run:
            save_experiment(experiment, force=force)
        return local_run.up(experiment, services, folder=folder, force=force, dry_run=dry_run)

    def list_experiments(self) -> list[str]:
        """The names of the experiments that run on this machine."""
        return [run.experiment for run in live_runs()]

    def describe_experiment(self, experiment_name: str) -> Mapping[str | None, Mapping[str, Mapping[str, str]]]:
        """The state of an experiment: group (None for lone processes) -> process -> Ready, Restarts, State."""
        described: dict[str | None, dict[str, dict[str, str]]] = {}
        for item in process_items(find_run(experiment_name)):
            described.setdefault(item["group"] or None, {})[item["name"]] = {
                "Ready": "1" if item["ready"] else "0",
                "Restarts": str(item["restarts"]),
                "State": item["state"],
            }
        return described

    def delete(self, experiment_name: str) -> None:
        """End an experiment and all its processes; raises NotFound unless it runs here."""
        from symphony_charts.cluster import local_run

        local_run.down(find_run(experiment_name, live=True))

    def get_log(
        self, experiment_name: str, process_name: str, process_group: str | None = None, tail: int = -1, **_: Any
    ) -> str:
        """What a process has printed: its last `tail` lines, or all of them."""
        run = find_run(experiment_name)
        name = f"{process_group}/{process_name}" if process_group else process_name
        logs = [run.process_dir(slot) / "log" for slot in find_slots(run, name)]
        text = "".join(log.read_text(encoding="utf-8", errors="replace") for log in logs if log.exists())
        return text if tail < 0 else "".join(text.splitlines(keepends=True)[-tail:] if tail else [])
