"""Symphony's `symphony.kube` launches experiments on Kubernetes as charts."""

from __future__ import annotations

from typing import Any

from symphony_charts.clusters.gke_dispatcher import GKEDispatcher
from symphony_charts.clusters.kubernetes import KubeCluster as OurCluster
from symphony_charts.compat.errors import symphonys
from symphony_charts.compat.spec import ExperimentSpec, ProcessGroupSpec, ProcessSpec
from symphony_charts.formats.yaml_text import dump_all
from symphony_charts.prepare import prepare_experiment

__all__ = [
    "GKEDispatcher",
    "KubeCluster",
    "KubeExperimentSpec",
    "KubeProcessGroupSpec",
    "KubeProcessSpec",
]

KubeProcessSpec = ProcessSpec
KubeProcessGroupSpec = ProcessGroupSpec


class KubeExperimentSpec(ExperimentSpec):
    """An experiment for Kubernetes."""

    def compile(self) -> str:
        """The YAML documents of all objects that the experiment's chart makes; the same however often it is called."""
        return dump_all(prepare_experiment(self.finish()).objects)


class KubeBackend(OurCluster):
    """Kubernetes under Symphony's names. Experiments are charts, not bare pods, and are ours only by their labels."""

    def new_experiment(self, name: str, **fields: Any) -> KubeExperimentSpec:
        """A new experiment; `preamble_cmds` of the cluster hold for it unless it has its own."""
        if self._preamble_cmds is not None:
            fields.setdefault("preamble_cmds", self._preamble_cmds)
        return KubeExperimentSpec(name, **fields)

    def launch(self, exp: Any, force: bool = False, dry_run: bool = False, **options: Any) -> object:
        """Start an experiment; with `dry_run` print its objects. Raises ResourceExistsError where it is there."""
        with symphonys():
            return super().launch(exp, force=force, dry_run=dry_run, **options)

    def delete(self, experiment_name: str, **options: Any) -> Any:
        """End an experiment of ours; raises ValueError for any other."""
        with symphonys():
            return super().delete(experiment_name, **options)


KubeCluster = KubeBackend
