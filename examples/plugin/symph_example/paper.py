"""A backend that writes down what it would run. A real one submits it, and watches it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from symphony_charts.clusters.base import Addresses, Cluster, Launched
from symphony_charts.spec.model import Experiment


class PaperCluster(Cluster):
    """What `Cluster.new("paper")` makes, and `--on paper` means."""

    def start(
        self,
        experiment: Experiment,
        *,
        folder: Path,
        pins: Mapping[str, int],
        force: bool = False,
        dry_run: bool = False,
    ) -> object:
        """Write the names of the processes into NAME.txt in the current folder."""
        names = "".join(f"{name}\n" for name in experiment.processes)
        if not dry_run:
            Path(f"{experiment.name}.txt").write_text(names, encoding="utf-8")
        return names

    def addresses(self, launched: Launched) -> Addresses:
        """Nothing on paper can be dialled."""
        return {}
