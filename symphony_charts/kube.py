"""Symphony's `symphony.kube`: its names for the builders, which are the same on every backend, and the dispatcher."""

from __future__ import annotations

from symphony_charts.clusters.base import ExperimentSpec as KubeExperimentSpec
from symphony_charts.clusters.base import ProcessGroupSpec as KubeProcessGroupSpec
from symphony_charts.clusters.base import ProcessGroupSpec as ProcessGroup
from symphony_charts.clusters.base import ProcessSpec as KubeProcessSpec
from symphony_charts.clusters.base import ProcessSpec as Process
from symphony_charts.clusters.gke_dispatcher import GKEDispatcher
from symphony_charts.clusters.kubernetes import KubeCluster

__all__ = [
    "GKEDispatcher",
    "KubeCluster",
    "KubeExperimentSpec",
    "KubeProcessGroupSpec",
    "KubeProcessSpec",
    "Process",
    "ProcessGroup",
]
