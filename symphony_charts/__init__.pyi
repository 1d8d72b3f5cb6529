from symphony_charts.cli.parser import SymphonyParser
from symphony_charts.clusters.base import AddressBook, Cluster, ExperimentSpec, ProcessGroupSpec, ProcessSpec
from symphony_charts.clusters.base import ExperimentSpec as KubeExperimentSpec
from symphony_charts.clusters.base import ExperimentSpec as TmuxExperimentSpec
from symphony_charts.clusters.base import ProcessGroupSpec as KubeProcessGroupSpec
from symphony_charts.clusters.base import ProcessGroupSpec as TmuxProcessGroupSpec
from symphony_charts.clusters.base import ProcessSpec as KubeProcessSpec
from symphony_charts.clusters.base import ProcessSpec as TmuxProcessSpec
from symphony_charts.clusters.gke_dispatcher import GKEDispatcher
from symphony_charts.clusters.kubernetes import KubeCluster
from symphony_charts.clusters.tmux import TmuxCluster
from symphony_charts.errors import SymphError
from symphony_charts.settings.user import SymphonyConfig
from symphony_charts.spec.model import Experiment, Process, ProcessGroup
from symphony_charts.version import __version__

__all__ = [
    "AddressBook",
    "Cluster",
    "Experiment",
    "ExperimentSpec",
    "GKEDispatcher",
    "KubeCluster",
    "KubeExperimentSpec",
    "KubeProcessGroupSpec",
    "KubeProcessSpec",
    "Process",
    "ProcessGroup",
    "ProcessGroupSpec",
    "ProcessSpec",
    "SymphError",
    "SymphonyConfig",
    "SymphonyParser",
    "TmuxCluster",
    "TmuxExperimentSpec",
    "TmuxProcessGroupSpec",
    "TmuxProcessSpec",
    "__version__",
]

def __getattr__(name: str) -> object: ...
