"""Rules of devices: shared GPUs serve one container each, and TPU slices are filled as a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from symphony_charts.placement.fit.demand import Demand, Shape
from symphony_charts.placement.fit.supply import Cluster, make_cluster
from symphony_charts.placement.pools.pool import GKE_POOL_LABEL, Pool

TPU = "google.com/tpu"
TOPOLOGY = "cloud.google.com/gke-tpu-topology"


def cluster_of(pools: Sequence[Pool], demands: Sequence[Demand]) -> Cluster:
    """Return the cluster without fits that would leave a TPU slice half used, or that a device plugin would refuse."""
    cluster = make_cluster(pools, demands)
    if not any(pool.is_multi_host for pool in pools) and not any(demand.shape.gpus_at_once for demand in demands):
        return cluster

    def is_possible(demand: Demand, node: int) -> bool:
        pool, labels = cluster.pool_of(node), cluster.classes[node].labels
        return not (slice_fault(demand, pool)[0] or sharing_fault(demand.shape, pool, labels)[0])

    return cluster.restricted(is_possible)


def slice_fault(demand: Demand, pool: Pool) -> tuple[str, str]:
    """Return why `demand` cannot use the pool's slice, and a fix; empty texts if it can.

    Pods that request no chips are ignored.
    """
    if pool.tpu is None or not pool.is_multi_host or not demand.shape.amount(TPU):
        return "", ""
    tpu, asked = pool.tpu, demand.shape.amount(TPU)
    if asked != tpu.chips:
        return (
            f"a pod on slice {pool.name} must request all {tpu.chips} chips of its host, not {asked}",
            f"request {tpu.chips}",
        )
    keys = {key for key, _ in demand.shape.selector}
    if not keys & {TOPOLOGY, GKE_POOL_LABEL}:
        return f"slice {pool.name} needs its topology in the spec", f"set placement.tpu_topology: {tpu.topology}"
    odd = next(((name, count) for name, count in demand.members if count % tpu.hosts), None)
    if odd is not None:
        whole = -(-odd[1] // tpu.hosts) * tpu.hosts
        return f"slice {tpu.topology} has {tpu.hosts} hosts, {odd[0]} has {odd[1]} pods", f"set replicas to {whole}"
    return "", ""


def is_whole(cluster: Cluster, demand: int) -> bool:
    """Return True if slices are always filled whole: one group, and exactly as many hosts as pods."""
    if not cluster.demands[demand].shape.amount(TPU):
        return True
    rooms = cluster.fits[demand]
    on_slices = [node for node in rooms if cluster.pool_of(node).is_multi_host]
    if not on_slices:
        return True
    if len(on_slices) < len(rooms) or len(cluster.demands[demand].members) > 1:
        return False
    has_rivals = any(
        other.shape.amount(TPU) and number != demand and cluster.may_use(number, rooms)
        for number, other in enumerate(cluster.demands)
    )
    return not has_rivals and cluster.nodes_in(rooms) == cluster.demands[demand].count


# Source: GoogleCloudPlatform/container-engine-accelerators, pkg/gpu/nvidia: with time-sharing a container may request
# one `nvidia.com/gpu`; with MPS more, if the node has a single GPU.

_STRATEGY = "cloud.google.com/gke-gpu-sharing-strategy"
_CLIENTS = "cloud.google.com/gke-max-shared-clients-per-gpu"


def sharing_fault(shape: Shape, pool: Pool, labels: Mapping[str, str]) -> tuple[str, str]:
    """Return why a container of `shape` cannot share GPUs of nodes with `labels`, and a fix; empty if it can."""
    strategy = labels.get(_STRATEGY)
    if not shape.gpus_at_once or strategy is None:
        return "", ""
    clients = labels.get(_CLIENTS, "1")
    gpus = pool.allocatable.get("nvidia.com/gpu", 0)
    if strategy == "mps" and gpus == (int(clients) if clients.isdecimal() else 1):
        return "", ""
    what = f"a container requests {shape.gpus_at_once} GPUs, and may have only one where GPUs are shared ({strategy})"
    return what, "request 1 GPU, or use a pool without GPU sharing"
