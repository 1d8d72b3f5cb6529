"""Which class `Cluster.new` makes while Symphony's names are there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from symphony_charts.clusters.base import Cluster
from symphony_charts.compat.docker import DockerBackend
from symphony_charts.compat.kube import KubeBackend
from symphony_charts.compat.subproc import SubprocBackend
from symphony_charts.compat.tmux import TmuxBackend

__all__ = ["backends"]


@contextmanager
def backends() -> Iterator[None]:
    """Inside, ``kube``, ``tmux``, ``subproc`` and ``docker`` are Symphony's; what scripts register goes with it."""
    before = dict(Cluster._registry)
    Cluster._registry.update(kube=KubeBackend, tmux=TmuxBackend, subproc=SubprocBackend, docker=DockerBackend)
    try:
        yield
    finally:
        Cluster._registry.clear()
        Cluster._registry.update(before)
