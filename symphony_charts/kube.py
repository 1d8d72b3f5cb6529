"""Symphony's `symphony.kube`: its names for the builders, which are the same on every backend, and the dispatcher."""

from __future__ import annotations

from importlib import import_module

from symphony_charts.clusters.builders import ExperimentSpec as KubeExperimentSpec
from symphony_charts.clusters.builders import ProcessGroupSpec as KubeProcessGroupSpec
from symphony_charts.clusters.builders import ProcessGroupSpec as ProcessGroup
from symphony_charts.clusters.builders import ProcessSpec as KubeProcessSpec
from symphony_charts.clusters.builders import ProcessSpec as Process
from symphony_charts.clusters.kubernetes import KubeCluster

TYPE_CHECKING = False
if TYPE_CHECKING:
    from symphony_charts.clusters.gke_dispatcher import GKEDispatcher

__all__ = [
    "GKEDispatcher",
    "KubeCluster",
    "KubeExperimentSpec",
    "KubeProcessGroupSpec",
    "KubeProcessSpec",
    "Process",
    "ProcessGroup",
]


def __getattr__(name: str) -> object:
    # The dispatcher brings the machine catalogue along, which only its users need.
    if name == "GKEDispatcher":
        value: object = import_module("symphony_charts.clusters.gke_dispatcher").GKEDispatcher
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
