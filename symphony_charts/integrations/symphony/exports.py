"""Names that Symphony's top package and `symphony.commandline` exported."""

from __future__ import annotations

from symphony_charts.cli.verbs import Verb
from symphony_charts.commandline import SymphonyParser as OurParser
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


class SymphonyParser(OurParser):
    """The command line of scripts for Symphony, whose `ls` printed names alone."""

    def _load(self, verb: Verb) -> None:
        super()._load(verb)
        if verb.name == "ls":
            self._parsers[verb.name].set_defaults(output="name")
