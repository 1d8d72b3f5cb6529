"""`gcloud container node-pools list|describe` and `clusters describe` output (JSON or YAML) becomes node pools.

Schema: container/v1 NodePool. int64 fields are texts there, int32 numbers; both are accepted for either. Sizes are per
zone unless they are `total*`.
"""

from __future__ import annotations

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

__all__ = ["read_cluster", "read_node_pool"]


def read_cluster(cluster: Fields, catalog: Catalog) -> list[Pool]:
    """The pools of one `gcloud container clusters describe`."""
    policy = cluster.block("networkPolicy").flag("enabled")
    dataplane_v2 = cluster.block("networkConfig").text("datapathProvider") == "ADVANCED_DATAPATH"
    read = [read_node_pool(pool, catalog, calico=policy and not dataplane_v2) for pool in cluster.blocks("nodePools")]
    return [pool for pool in read if pool is not None]


def read_node_pool(pool: Fields, catalog: Catalog, *, calico: bool = False) -> Pool | None:
    """One NodePool of GKE's API."""
    config = pool.block("config")
    name = pool.text("name", required=True)
    machine = config.text("machineType") or "e2-medium"
    zones = tuple(pool.texts("locations"))
    low, high = _counts(pool, max(1, len(zones)))
    gpu = next(config.blocks("accelerators"), Fields({}, config.at("accelerators"), pool.faults))
    sharing = gpu.block("gpuSharingConfig")
    placement = pool.block("placementPolicy")
    reserved = config.block("kubeletConfig").block("reservedResourcesConfig")
    disk = config.number("diskSizeGb", minimum=10) or config.block("bootDisk").number("sizeGb", minimum=10)
    facts = PoolFacts(
        name=name,
        source=pool.faults.source(pool.path),
        machine_type=machine,
        version=pool.text("version"),
        image=config.text("imageType"),
        disk_gib=disk or 100,
        ephemeral_ssds=config.block("ephemeralStorageLocalSsdConfig").number("localSsdCount"),
        labels=config.mapping("labels"),
        taints=read_taints(config, "taints"),
        gpu_type=gpu.text("acceleratorType"),
        gpu_count=gpu.number("acceleratorCount") or 0,
        gpu_partition=gpu.text("gpuPartitionSize"),
        gpu_sharing=sharing.text("gpuSharingStrategy"),
        gpu_clients=sharing.number("maxSharedClientsPerGpu") or 1,
        provisioning=provisioning_of(config, "flexStart"),
        zones=zones,
        min_nodes=low,
        max_nodes=high,
        max_pods=pool.block("maxPodsConstraint").number("maxPodsPerNode", minimum=1) or 110,
        placement=placement.text("policyName") or ("compact" if placement.text("type") == "COMPACT" else ""),
        tpu_topology=placement.text("tpuTopology"),
        reservation=reservation_of(config.block("reservationAffinity"), "consumeReservationType"),
        queued=pool.block("queuedProvisioning").flag("enabled"),
        streaming=config.block("gcfsConfig").flag("enabled"),
        one_thread=config.block("advancedMachineFeatures").number("threadsPerCore") == 1,
        confidential=config.block("confidentialNodes").flag("enabled"),
        calico=calico,
        reserved_cpu=reserved.number("effectiveCpuReservedMillicore", "cpuReservedMillicore"),
        reserved_memory_mib=reserved.number("effectiveMemoryReservedMib", "memoryReservedMib"),
    )
    return make_pool(facts, catalog, Fields({}, config.at("machineType"), pool.faults)) if name else None


def _counts(pool: Fields, zones: int) -> tuple[int, int]:
    """The least and the largest number of nodes of the whole pool."""
    scaling = pool.block("autoscaling")
    if not scaling.flag("enabled"):
        count = (pool.number("initialNodeCount") or 0) * zones
        return count, count
    total_high = scaling.number("totalMaxNodeCount")
    if total_high:
        return scaling.number("totalMinNodeCount") or 0, total_high
    return (scaling.number("minNodeCount") or 0) * zones, (scaling.number("maxNodeCount") or 0) * zones
