"""A GPU that pods share admits one client of it for each container, whatever the node counts.

Source: GoogleCloudPlatform/container-engine-accelerators, pkg/gpu/nvidia: with time-sharing a container may ask for
one `nvidia.com/gpu`; with MPS for more, where the node has a single GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from symphony_charts.placement.fit.demand import Shape
from symphony_charts.placement.fit.supply import Cluster

__all__ = ["keep_shares_single", "sharing_fault"]

_STRATEGY = "cloud.google.com/gke-gpu-sharing-strategy"
_CLIENTS = "cloud.google.com/gke-max-shared-clients-per-gpu"


def sharing_fault(shape: Shape, labels: Mapping[str, str], gpus: int) -> tuple[str, str]:
    """Return why a container of `shape` cannot share a node's GPUs, and what to do; empty if it can."""
    strategy = labels.get(_STRATEGY)
    if not shape.gpus_at_once or strategy is None:
        return "", ""
    clients = labels.get(_CLIENTS, "1")
    if strategy == "mps" and gpus == (int(clients) if clients.isdecimal() else 1):
        return "", ""
    what = f"a container asks for {shape.gpus_at_once} GPUs, and gets one at most where GPUs are shared ({strategy})"
    return what, "ask for 1 GPU, or use a pool whose GPUs are not shared"


def keep_shares_single(cluster: Cluster) -> Cluster:
    """Return the cluster without the fits that a device plugin would refuse."""
    if not any(demand.shape.gpus_at_once for demand in cluster.demands):
        return cluster
    shared = {
        number: cluster.pools[node.pool].allocatable.get("nvidia.com/gpu", 0)
        for number, node in enumerate(cluster.classes)
        if _STRATEGY in node.labels
    }
    fits = tuple(
        {
            node: room
            for node, room in rooms.items()
            if node not in shared or not sharing_fault(demand.shape, cluster.classes[node].labels, shared[node])[0]
        }
        for demand, rooms in zip(cluster.demands, cluster.fits, strict=True)
    )
    return replace(cluster, fits=fits)
