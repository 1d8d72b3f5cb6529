"""Terraform's google_container_node_pool and google_container_cluster attributes become node pools.

The same attributes stand in a configuration (JSON or HCL), in a plan and in a state; blocks are objects, or lists of
one. The readers of those files hand over one attribute map per pool.
"""

from __future__ import annotations

from collections.abc import Iterator

from symphony_charts.formats.field_reader import Fields
from symphony_charts.placement.machines.catalog import Catalog
from symphony_charts.placement.pools.gke_node_pool import (
    PoolFacts,
    make_pool,
    provisioning_of,
    read_taints,
    reservation_of,
)
from symphony_charts.placement.pools.pool import Pool

__all__ = ["CLUSTER", "NODE_POOL", "pools_of_cluster", "read_pool"]

NODE_POOL = "google_container_node_pool"
CLUSTER = "google_container_cluster"


def pools_of_cluster(cluster: Fields, catalog: Catalog) -> Iterator[Pool | None]:
    """The pools written inside a cluster resource: its `node_pool` blocks and its default pool."""
    for block in cluster.blocks("node_pool"):
        yield read_pool(block, catalog, fallback=cluster)
    if cluster.has("node_config") and not cluster.flag("remove_default_node_pool") and not cluster.has("node_pool"):
        yield read_pool(cluster, catalog, name="default-pool")


def read_pool(pool: Fields, catalog: Catalog, *, name: str = "", fallback: Fields | None = None) -> Pool | None:
    """The pool of one attribute map; `name` stands in where it has none, `fallback` is the cluster around it."""
    config = pool.block("node_config")
    zones = tuple(pool.texts("node_locations")) or _location(fallback or pool)
    low, high = _counts(pool, max(1, len(zones)))
    gpu = next(config.blocks("guest_accelerator"), Fields({}, config.at("guest_accelerator"), pool.faults))
    sharing = gpu.block("gpu_sharing_config")
    placement = pool.block("placement_policy")
    shown = name or pool.text("name", "name_prefix", required=True)
    facts = PoolFacts(
        name=shown,
        source=pool.faults.source(pool.path),
        machine_type=config.text("machine_type") or "e2-medium",
        version=pool.text("version"),
        image=config.text("image_type"),
        disk_gib=config.number("disk_size_gb", minimum=10) or 100,
        ephemeral_ssds=config.block("ephemeral_storage_local_ssd_config").number("local_ssd_count"),
        labels=config.mapping("labels"),
        taints=read_taints(config, "taint", "effective_taints"),
        gpu_type=gpu.text("type"),
        gpu_count=gpu.number("count") or 0,
        gpu_partition=gpu.text("gpu_partition_size"),
        gpu_sharing=sharing.text("gpu_sharing_strategy"),
        gpu_clients=sharing.number("max_shared_clients_per_gpu") or 1,
        provisioning=provisioning_of(config, "flex_start"),
        zones=zones,
        min_nodes=low,
        max_nodes=high,
        max_pods=pool.number("max_pods_per_node", minimum=1) or 110,
        placement=placement.text("policy_name") or ("compact" if placement.text("type") == "COMPACT" else ""),
        tpu_topology=placement.text("tpu_topology"),
        reservation=reservation_of(config.block("reservation_affinity"), "consume_reservation_type"),
        queued=pool.block("queued_provisioning").flag("enabled"),
        streaming=config.block("gcfs_config").flag("enabled"),
        one_thread=config.block("advanced_machine_features").number("threads_per_core") == 1,
        confidential=config.block("confidential_nodes").flag("enabled"),
    )
    place = Fields({}, config.at("machine_type"), pool.faults)
    return make_pool(facts, catalog, place) if shown else None


def _location(resource: Fields) -> tuple[str, ...]:
    """A zone stands for itself; a region has three zones that Terraform does not name, so it counts once."""
    value = resource.data.get("location") or resource.data.get("zone")
    return (value,) if isinstance(value, str) and value and "${" not in value else ()


def _counts(pool: Fields, zones: int) -> tuple[int, int]:
    scaling = pool.block("autoscaling")
    if scaling.data:
        total = scaling.number("total_max_node_count")
        if total:
            return scaling.number("total_min_node_count") or 0, total
        return (scaling.number("min_node_count") or 0) * zones, (scaling.number("max_node_count") or 0) * zones
    count = (pool.number("node_count", "initial_node_count") or 0) * zones
    return count, count
