"""Experiments on Kubernetes, as charts."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from symphony_charts.cluster.cluster import Cluster
from symphony_charts.errors import SymphError
from symphony_charts.spec.check import finish
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.yaml_text import dump_all

__all__ = ["KubeCluster"]


class KubeCluster(Cluster):
    """A Kubernetes cluster. Experiments reach it as Helm charts: packaged, then installed or synced from Git."""

    def start(
        self,
        experiment: Experiment,
        *,
        folder: Path,  # noqa: ARG002 - part of the interface; a pod knows no folder of this machine
        pins: Mapping[str, int],
        force: bool = False,  # noqa: ARG002 - part of the interface; nothing is saved or replaced here
        dry_run: bool = False,
    ) -> list[dict[str, object]]:
        """Print the objects that the experiment becomes, and return them.

        Raises SymphError without `dry_run`: a chart is made by `symph package` and installed by helm.
        """
        from symphony_charts.cluster.render import objects_of

        experiment = finish(experiment, for_cluster=True)
        if not dry_run:
            name = experiment.name
            next_step = f"symph package SPEC && helm install {name} dist/{name}; launch(exp, dry_run=True) only looks"
            raise SymphError(f'"{name}" cannot be started on Kubernetes from Python yet', next=next_step)
        objects = objects_of(experiment, pins)
        sys.stdout.write(dump_all(objects))
        return objects
