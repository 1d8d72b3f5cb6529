"""Names that Symphony's top package exported."""

from __future__ import annotations

from symphony_charts.commandline import SymphonyParser
from symphony_charts.engine import AddressBook, Cluster, SymphonyConfig
from symphony_charts.integrations.symphony.addons import DockerBuilder, clean_images
from symphony_charts.integrations.symphony.finder import DockerCluster
from symphony_charts.integrations.symphony.kube import (
    GKEDispatcher,
    KubeCluster,
    KubeExperimentSpec,
    KubeProcessGroupSpec,
    KubeProcessSpec,
)
from symphony_charts.integrations.symphony.spec import ExperimentSpec, ProcessGroupSpec, ProcessSpec
from symphony_charts.integrations.symphony.subproc import (
    SubprocCluster,
    SubprocExperimentSpec,
    SubprocManager,
    SubprocProcessGroupSpec,
    SubprocProcessSpec,
)
from symphony_charts.integrations.symphony.tmux import (
    TmuxCluster,
    TmuxExperimentSpec,
    TmuxProcessGroupSpec,
    TmuxProcessSpec,
)

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
