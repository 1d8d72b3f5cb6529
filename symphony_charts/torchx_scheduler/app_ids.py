"""An app id says which experiment on which backend a TorchX handle means.

``echo`` is on this machine, ``ml:echo`` in namespace ``ml`` of the current cluster, ``gke:ml:echo`` on the cluster of
context ``gke`` (percent-encoded, since contexts may hold anything), ``chart::echo`` a chart that was written.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, unquote

from symphony_charts.clusters.base import Cluster

__all__ = ["AppId", "parse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AppId:
    """The experiment `name`, on this machine unless it has a namespace."""

    name: str
    namespace: str | None = None
    context: str | None = None
    is_chart: bool = False

    def __str__(self) -> str:
        if self.is_chart:
            return f"chart::{self.name}"
        parts = (quote(self.context, safe="") if self.context else None, self.namespace, self.name)
        return ":".join(part for part in parts if part)

    def cluster(self) -> Cluster:
        """The backend that it is on."""
        return cluster_of(self.namespace, self.context) if self.namespace else Cluster.new("tmux")


def parse(text: str) -> AppId:
    """The app id that `text` writes; any text is one."""
    *cluster_parts, name = text.split(":")
    if cluster_parts == ["chart", ""]:
        return AppId(name=name, is_chart=True)
    context = unquote(":".join(cluster_parts[:-1])) or None
    return AppId(name=name, namespace=cluster_parts[-1] if cluster_parts else None, context=context)


def cluster_of(namespace: str | None, context: str | None) -> Cluster:
    """A Kubernetes cluster, by context and namespace."""
    return Cluster.new("kube", namespace=namespace, context=context)
