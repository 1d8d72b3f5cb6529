"""What Symphony's top package exported."""

from __future__ import annotations

from symphony_charts.compat.addons import DockerBuilder, clean_images
from symphony_charts.compat.commandline import SymphonyParser
from symphony_charts.compat.docker import DockerCluster
from symphony_charts.compat.engine import AddressBook, Cluster, SymphonyConfig
from symphony_charts.compat.kube import (
    GKEDispatcher,
    KubeCluster,
    KubeExperimentSpec,
    KubeProcessGroupSpec,
    KubeProcessSpec,
)
from symphony_charts.compat.spec import ExperimentSpec, ProcessGroupSpec, ProcessSpec
from symphony_charts.compat.subproc import (
    SubprocCluster,
    SubprocExperimentSpec,
    SubprocManager,
    SubprocProcessGroupSpec,
    SubprocProcessSpec,
)
from symphony_charts.compat.tmux import TmuxCluster, TmuxExperimentSpec, TmuxProcessGroupSpec, TmuxProcessSpec

__all__ = [
    "AddressBook",
    "Cluster",
    "DockerBuilder",
    "DockerCluster",
    "ExperimentSpec",
    "GKEDispatcher",
    "KubeCluster",
    "KubeExperimentSpec",
    "KubeProcessGroupSpec",
    "KubeProcessSpec",
    "ProcessGroupSpec",
    "ProcessSpec",
    "SubprocCluster",
    "SubprocExperimentSpec",
    "SubprocManager",
    "SubprocProcessGroupSpec",
    "SubprocProcessSpec",
    "SymphonyConfig",
    "SymphonyParser",
    "TmuxCluster",
    "TmuxExperimentSpec",
    "TmuxProcessGroupSpec",
    "TmuxProcessSpec",
    "clean_images",
]
