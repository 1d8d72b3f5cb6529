"""One experiment, written once, as tmux sessions on a laptop and as a versioned Helm chart."""

from __future__ import annotations

from importlib import import_module

from symphony_charts.version import __version__

# Names are imported when they are first used (PEP 562): `import symphony_charts` and `symph --help` stay quick.
# `__init__.pyi` tells type checkers where they come from.
_HOMES = {
    "AddressBook": "clusters.base:AddressBook",
    "Cluster": "clusters.base:Cluster",
    "Experiment": "spec.model:Experiment",
    "ExperimentSpec": "clusters.base:ExperimentSpec",
    "GKEDispatcher": "clusters.gke_dispatcher:GKEDispatcher",
    "KubeCluster": "clusters.kubernetes:KubeCluster",
    "KubeExperimentSpec": "clusters.base:ExperimentSpec",
    "KubeProcessGroupSpec": "clusters.base:ProcessGroupSpec",
    "KubeProcessSpec": "clusters.base:ProcessSpec",
    "Process": "spec.model:Process",
    "ProcessGroup": "spec.model:ProcessGroup",
    "ProcessGroupSpec": "clusters.base:ProcessGroupSpec",
    "ProcessSpec": "clusters.base:ProcessSpec",
    "SymphError": "errors:SymphError",
    "SymphonyConfig": "settings.user:SymphonyConfig",
    "SymphonyParser": "cli.parser:SymphonyParser",
    "TmuxCluster": "clusters.tmux:TmuxCluster",
    "TmuxExperimentSpec": "clusters.base:ExperimentSpec",
    "TmuxProcessGroupSpec": "clusters.base:ProcessGroupSpec",
    "TmuxProcessSpec": "clusters.base:ProcessSpec",
}
__all__ = [*_HOMES, "__version__"]  # noqa: PLE0604 - the keys are strings


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = _HOMES[name].partition(":")
    value: object = getattr(import_module(f"{__name__}.{module}"), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
