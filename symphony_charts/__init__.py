"""One experiment, written once, as tmux sessions on a laptop and as a versioned Helm chart."""

from __future__ import annotations

from importlib import import_module

__version__ = "0.1.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from symphony_charts.cli.parser import SymphonyParser
    from symphony_charts.cluster.address_book import AddressBook
    from symphony_charts.cluster.cluster import Cluster
    from symphony_charts.cluster.config import SymphonyConfig
    from symphony_charts.cluster.gke_dispatcher import GKEDispatcher
    from symphony_charts.cluster.kube_cluster import KubeCluster
    from symphony_charts.cluster.specs import ExperimentSpec, ProcessGroupSpec, ProcessSpec
    from symphony_charts.cluster.specs import ExperimentSpec as KubeExperimentSpec
    from symphony_charts.cluster.specs import ExperimentSpec as TmuxExperimentSpec
    from symphony_charts.cluster.specs import ProcessGroupSpec as KubeProcessGroupSpec
    from symphony_charts.cluster.specs import ProcessGroupSpec as TmuxProcessGroupSpec
    from symphony_charts.cluster.specs import ProcessSpec as KubeProcessSpec
    from symphony_charts.cluster.specs import ProcessSpec as TmuxProcessSpec
    from symphony_charts.cluster.tmux_cluster import TmuxCluster
    from symphony_charts.errors import SymphError
    from symphony_charts.spec.model import Experiment, Process, ProcessGroup

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

# Names are imported when they are first used (PEP 562): `import symphony_charts` and `symph --help` stay quick.
_HOMES = {
    "AddressBook": "cluster.address_book:AddressBook",
    "Cluster": "cluster.cluster:Cluster",
    "Experiment": "spec.model:Experiment",
    "ExperimentSpec": "cluster.specs:ExperimentSpec",
    "GKEDispatcher": "cluster.gke_dispatcher:GKEDispatcher",
    "KubeCluster": "cluster.kube_cluster:KubeCluster",
    "KubeExperimentSpec": "cluster.specs:ExperimentSpec",
    "KubeProcessGroupSpec": "cluster.specs:ProcessGroupSpec",
    "KubeProcessSpec": "cluster.specs:ProcessSpec",
    "Process": "spec.model:Process",
    "ProcessGroup": "spec.model:ProcessGroup",
    "ProcessGroupSpec": "cluster.specs:ProcessGroupSpec",
    "ProcessSpec": "cluster.specs:ProcessSpec",
    "SymphError": "errors:SymphError",
    "SymphonyConfig": "cluster.config:SymphonyConfig",
    "SymphonyParser": "cli.parser:SymphonyParser",
    "TmuxCluster": "cluster.tmux_cluster:TmuxCluster",
    "TmuxExperimentSpec": "cluster.specs:ExperimentSpec",
    "TmuxProcessGroupSpec": "cluster.specs:ProcessGroupSpec",
    "TmuxProcessSpec": "cluster.specs:ProcessSpec",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = _HOMES[name].partition(":")
    value: object = getattr(import_module(f"{__name__}.{module}"), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
