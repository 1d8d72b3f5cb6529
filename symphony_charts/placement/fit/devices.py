"""A TPU slice of several hosts is one pool, filled as a whole by one group, or not at all."""

from __future__ import annotations

from dataclasses import replace

from symphony_charts.placement.fit.demand import Demand
from symphony_charts.placement.fit.supply import Cluster
from symphony_charts.placement.pools.pool import GKE_POOL_LABEL, Pool

__all__ = ["is_whole", "keep_slices_whole", "slice_fault"]

TPU = "google.com/tpu"
TOPOLOGY = "cloud.google.com/gke-tpu-topology"


def slice_fault(demand: Demand, pool: Pool) -> tuple[str, str]:
    """Return why `demand` cannot use the slice that `pool` is, and what to do; empty texts if it can.

    Pods that ask for no chips are none of its business.
    """
    if pool.tpu is None or not pool.is_multi_host or not demand.shape.amount(TPU):
        return "", ""
    tpu, asked = pool.tpu, demand.shape.amount(TPU)
    if asked != tpu.chips:
        return (
            f"a pod of slice {pool.name} takes all {tpu.chips} chips of its host, not {asked}",
            f"ask for {tpu.chips}",
        )
    keys = {key for key, _ in demand.shape.selector}
    if not keys & {TOPOLOGY, GKE_POOL_LABEL}:
        return f"slice {pool.name} needs its topology named", f"set placement.tpu_topology: {tpu.topology}"
    odd = next(((name, count) for name, count in demand.members if count % tpu.hosts), None)
    if odd is not None:
        whole = -(-odd[1] // tpu.hosts) * tpu.hosts
        return f"slice {tpu.topology} has {tpu.hosts} hosts, {odd[0]} has {odd[1]} pods", f"set replicas to {whole}"
    return "", ""


def keep_slices_whole(cluster: Cluster) -> Cluster:
    """Return the cluster without the fits that would leave a slice half used."""
    if not any(pool.is_multi_host for pool in cluster.pools):
        return cluster
    fits = []
    for demand, rooms in zip(cluster.demands, cluster.fits, strict=True):
        fits.append(
            {
                node: room
                for node, room in rooms.items()
                if not slice_fault(demand, cluster.pools[cluster.classes[node].pool])[0]
            }
        )
    return replace(cluster, fits=tuple(fits))


def is_whole(cluster: Cluster, demand: int) -> bool:
    """Return True if slices are always filled whole: one group, and exactly as many hosts as pods."""
    if not cluster.demands[demand].shape.amount(TPU):
        return True
    rooms = cluster.fits[demand]
    on_slices = [node for node in rooms if cluster.pools[cluster.classes[node].pool].is_multi_host]
    if not on_slices:
        return True
    if len(on_slices) < len(rooms) or len(cluster.demands[demand].members) > 1:
        return False
    tpu = cluster.dimensions.index(TPU)
    rivals = [
        other
        for other in range(len(cluster.demands))
        if other != demand and cluster.needs[other][tpu] and cluster.may_use(other, rooms)
    ]
    return not rivals and sum(cluster.classes[node].count for node in rooms) == cluster.demands[demand].count
