"""Pods of kube-system outside of DaemonSets, which use room on the nodes of the cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from symphony_charts.formats.quantity import MIB
from symphony_charts.placement.allocatable import CLUSTER_PODS
from symphony_charts.placement.fit.demand import Demand, Shape, demands_of
from symphony_charts.placement.fit.packing import Packing
from symphony_charts.placement.fit.supply import Cluster
from symphony_charts.placement.pools.pool import Pools
from symphony_charts.spec.sources import Toleration

_PREFIX = "kube-system/"
_ARM = (Toleration(key="kubernetes.io/arch", operator="Equal", value="arm64", effect="NoSchedule"),)


def system_demands(pools: Pools) -> list[Demand]:
    """Return the Deployments beside the experiment: given ones, else GKE's; none if all pods are known.

    Nodes with known pods already include them, and a `pools.yaml` that sets a node's resources also sets the system's
    requests.
    """
    if pools.workloads is not None:
        return [
            Demand(demand.shape, [(f"{_PREFIX}{name}", count) for name, count in demand.members])
            for demand in demands_of(pools.workloads)
        ]
    is_gke = any(pool.accuracy in ("model", "effective") for pool in pools.pools)
    if any(pool.is_load_known for pool in pools.pools) or not is_gke:
        return []
    return [
        Demand(
            Shape(
                requests=(("cpu", pods.cpu), ("memory", pods.memory_mib * MIB), ("pods", 1)),
                selector=(("kubernetes.io/os", "linux"),),
                tolerations=_ARM,
            ),
            [(_PREFIX + pods.name, pods.least)],
        )
        for pods in CLUSTER_PODS
    ]


def empty_of(demands: Sequence[Demand]) -> tuple[Demand, ...]:
    """Return the same shapes without pods."""
    return tuple(Demand(demand.shape, []) for demand in demands)


def grown(system: Sequence[Demand], cluster: Cluster, packing: Packing) -> list[Demand]:
    """Return the demands with the number of pods that the nodes of a packing of the `cluster` need."""
    nodes = sum(filled.count for filled in packing.nodes)
    cores = sum(cluster.pool_of(filled.node).vcpu * filled.count for filled in packing.nodes)
    by_name = {_PREFIX + pods.name: pods.count(nodes, cores) for pods in CLUSTER_PODS}
    return [
        Demand(demand.shape, [(name, by_name.get(name, count)) for name, count in demand.members]) for demand in system
    ]


def system_note(demands: Sequence[Demand]) -> Iterator[str]:
    """Yield one line about the pods that are assumed to run once per cluster."""
    if demands:
        cpu = sum(demand.shape.amount("cpu") * demand.count for demand in demands)
        memory = sum(demand.shape.amount("memory") * demand.count for demand in demands) // MIB
        names = ", ".join(
            f"{name.removeprefix(_PREFIX)} x{count}" for demand in demands for name, count in sorted(demand.members)
        )
        yield f"counted once for the cluster: {cpu}m/{memory}Mi of kube-system ({names}); change this with --system"
