"""`gcloud container node-pools list|describe` and `clusters describe` output (JSON or YAML) becomes node pools.

Schema: container/v1 NodePool. int64 fields are texts there, int32 numbers; both are accepted for either. Sizes are per
zone unless they are `total*`.
"""

from __future__ import annotations

from collections.abc import Iterator

from symphony_charts.formats.field_reader import Fields
from symphony_charts.placement.machines.catalog import Catalog
from symphony_charts.placement.pools.gke_node_pool import (
    PoolFacts,
    doubt,
    driver_doubts,
    huge_pages,
    make_pool,
    provisioning_of,
    read_taints,
    reservation_of,
)
from symphony_charts.placement.pools.known_cluster_keys import GCLOUD_CLUSTER
from symphony_charts.placement.pools.known_keys import GCLOUD_POOL, unread_keys
from symphony_charts.placement.pools.pool import Doubt, Pool, Pools
from symphony_charts.placement.pools.terraform import ClusterFacts

_DRIVERS = {
    "gcpFilestoreCsiDriverConfig": "Filestore", "lustreCsiDriverConfig": "Lustre",
    "parallelstoreCsiDriverConfig": "Parallelstore",
}  # fmt: skip

__all__ = ["read_cluster", "read_node_pool"]


def read_cluster(cluster: Fields, catalog: Catalog) -> Pools:
    """Return the pools of one `gcloud container clusters describe`."""
    policy = cluster.block("networkPolicy").flag("enabled")
    dataplane_v2 = cluster.block("networkConfig").text("datapathProvider") == "ADVANCED_DATAPATH"
    confidential = cluster.block("confidentialNodes").flag("enabled")
    addons = cluster.block("addonsConfig")
    facts = ClusterFacts(
        zones=tuple(cluster.texts("locations")),
        calico=policy and not dataplane_v2,
        confidential=confidential,
        gcs_fuse=addons.block("gcsFuseCsiDriverConfig").flag("enabled"),
        doubts=(*unread_keys(cluster, GCLOUD_CLUSTER), *driver_doubts(addons, _DRIVERS)),
    )
    read = [read_node_pool(pool, catalog, facts) for pool in cluster.blocks("nodePools")]
    grows = []
    if cluster.block("autopilot").flag("enabled"):
        grows.append("an Autopilot cluster, which makes its nodes itself")
    elif cluster.block("autoscaling").flag("enableNodeAutoprovisioning"):
        grows.append("node auto-provisioning, which may add pools")
    return Pools(pools=tuple(pool for pool in read if pool is not None), grows=tuple(grows))


def read_node_pool(
    pool: Fields,
    catalog: Catalog,
    cluster: ClusterFacts | None = None,
) -> Pool | None:
    """One NodePool of GKE's API."""
    cluster = cluster or ClusterFacts()
    config = pool.block("config")
    name = pool.text("name", required=True)
    machine = config.text("machineType") or "e2-medium"
    zones = tuple(pool.texts("locations")) or cluster.zones
    low, high = _counts(pool, max(1, len(zones)))
    doubts = [*unread_keys(pool, GCLOUD_POOL), *_doubts(pool, config), *cluster.doubts]
    if not zones and not pool.block("autoscaling").number("totalMaxNodeCount"):
        doubts.append(doubt(pool, "its zones are not said: one is counted, there may be more", "PROVEN", may_grow=True))
    ssds = config.block("ephemeralStorageLocalSsdConfig", "ephemeralStorageConfig")
    preloads = any(disk.text("mode") == "CONTAINER_IMAGE_CACHE" for disk in config.blocks("secondaryBootDisks"))
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
        ephemeral_ssds=ssds.number("localSsdCount"),
        cache_ssds=ssds.number("dataCacheCount") or 0,
        raw_ssds=config.block("localNvmeSsdBlockConfig").number("localSsdCount") or 0,
        extra_ssds=config.number("localSsdCount") or 0,
        labels=config.mapping("labels"),
        taints=read_taints(config, "taints"),
        gpu_type=gpu.text("acceleratorType"),
        gpu_count=gpu.number("acceleratorCount") or 0,
        gpu_partition=gpu.text("gpuPartitionSize"),
        gpu_sharing=sharing.text("gpuSharingStrategy"),
        gpu_clients=sharing.number("maxSharedClientsPerGpu") or 1,
        gpu_driver=gpu.block("gpuDriverInstallationConfig").text("gpuDriverVersion"),
        provisioning=provisioning_of(config, "flexStart"),
        zones=zones,
        min_nodes=low,
        max_nodes=high,
        max_pods=pool.block("maxPodsConstraint").number("maxPodsPerNode", minimum=1) or 110,
        placement=placement.text("policyName") or ("compact" if placement.text("type") == "COMPACT" else ""),
        tpu_topology=placement.text("tpuTopology"),
        reservation=reservation_of(config.block("reservationAffinity"), "consumeReservationType"),
        queued=pool.block("queuedProvisioning").flag("enabled"),
        streaming=config.block("gcfsConfig").flag("enabled") or preloads,
        one_thread=config.block("advancedMachineFeatures").number("threadsPerCore") == 1,
        confidential=config.block("confidentialNodes").flag("enabled") or cluster.confidential,
        calico=cluster.calico,
        gcs_fuse=cluster.gcs_fuse,
        hugepages=huge_pages(config.block("linuxNodeConfig").block("hugepages"), "hugepageSize2m", "hugepageSize1g"),
        sandbox=config.block("sandboxConfig").text("type", "sandboxType").lower(),
        doubts=tuple(doubts),
        reserved_cpu=reserved.number("effectiveCpuReservedMillicore", "cpuReservedMillicore"),
        reserved_memory_mib=reserved.number("effectiveMemoryReservedMib", "memoryReservedMib"),
    )
    return make_pool(facts, catalog, Fields({}, config.at("machineType"), pool.faults)) if name else None


def _doubts(pool: Fields, config: Fields) -> Iterator[Doubt]:
    status = pool.text("status")
    if status not in _STATES:
        yield doubt(pool, f"its status is {status}", "UNKNOWN")
    if config.has("soleTenantConfig") or config.has("nodeGroup"):
        yield doubt(config, "sole tenancy: its hosts hold no more nodes than were reserved", "UNKNOWN")
    if config.block("loggingConfig").block("variantConfig").text("variant") == "MAX_THROUGHPUT":
        yield doubt(config, "the logging agent for high throughput asks for more than is counted here", "UNKNOWN")


_STATES = frozenset({"", "RUNNING", "PROVISIONING", "RECONCILING"})


def _counts(pool: Fields, zones: int) -> tuple[int, int]:
    scaling = pool.block("autoscaling")
    if not scaling.flag("enabled"):
        count = (pool.number("initialNodeCount") or 0) * zones
        return count, count
    total_high = scaling.number("totalMaxNodeCount")
    if total_high:
        return scaling.number("totalMinNodeCount") or 0, total_high
    return (scaling.number("minNodeCount") or 0) * zones, (scaling.number("maxNodeCount") or 0) * zones
