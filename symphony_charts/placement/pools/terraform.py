"""Terraform's google_container_node_pool and google_container_cluster attributes become node pools.

A configuration in JSON, a plan and a state have the same attributes; blocks are objects, or lists of one. The readers
of those files pass one attribute map per pool, and the settings of its cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

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
from symphony_charts.placement.pools.known_cluster_keys import TERRAFORM_CLUSTER
from symphony_charts.placement.pools.known_keys import TERRAFORM_NODE_CONFIG, TERRAFORM_POOL, unread_keys
from symphony_charts.placement.pools.pool import Doubt, Pool

__all__ = ["CLUSTER", "NODE_POOL", "ClusterFacts", "grows", "pools_of_cluster", "read_cluster_facts", "read_pool"]

NODE_POOL = "google_container_node_pool"
CLUSTER = "google_container_cluster"
_DRIVERS = {
    "gcp_filestore_csi_driver_config": "Filestore", "lustre_csi_driver_config": "Lustre",
    "parallelstore_csi_driver_config": "Parallelstore",
}  # fmt: skip
_ALL_ZONES = "the zones of {where} are not said: one is counted, there may be more"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """What a cluster says of all of its pools; `reservations` are those of the file, with their numbers of machines."""

    zones: tuple[str, ...] = ()
    location: str = ""
    calico: bool = False
    max_pods: int | None = None
    confidential: bool = False
    streaming: bool = False
    gcs_fuse: bool = False
    doubts: tuple[Doubt, ...] = ()
    reservations: Mapping[str, int] = field(default_factory=dict)


def read_cluster_facts(cluster: Fields, reservations: Mapping[str, int] | None = None) -> ClusterFacts:
    """What the attributes of a cluster say of its pools; a zonal cluster's own zone is one of its zones."""
    location = _known(cluster, "location", "zone", "region")
    zones = _zones(cluster)
    if _is_zone(location) and location not in zones:
        zones = (location, *zones)
    addons = cluster.block("addons_config")
    dataplane_v2 = cluster.text("datapath_provider") == "ADVANCED_DATAPATH"
    defaults = cluster.block("node_pool_defaults").block("node_config_defaults")
    return ClusterFacts(
        zones=zones,
        location=location,
        calico=cluster.block("network_policy").flag("enabled") and not dataplane_v2,
        max_pods=cluster.number("default_max_pods_per_node", minimum=1),
        confidential=cluster.block("confidential_nodes").flag("enabled"),
        streaming=defaults.block("gcfs_config").flag("enabled"),
        gcs_fuse=addons.block("gcs_fuse_csi_driver_config").flag("enabled"),
        doubts=(*unread_keys(cluster, TERRAFORM_CLUSTER), *driver_doubts(addons, _DRIVERS), *_of_logging(defaults)),
        reservations=reservations or {},
    )


def grows(cluster: Fields) -> Iterator[str]:
    """Why the cluster may have more pools than the file shows."""
    if cluster.flag("enable_autopilot"):
        yield "an Autopilot cluster, which makes its nodes itself"
    if cluster.block("cluster_autoscaling").flag("enabled"):
        yield "node auto-provisioning, which may add pools"


def pools_of_cluster(cluster: Fields, catalog: Catalog, facts: ClusterFacts | None = None) -> Iterator[Pool | None]:
    """Yield the pools written inside a cluster resource: its `node_pool` blocks and its default pool."""
    facts = facts or read_cluster_facts(cluster)
    for block in cluster.blocks("node_pool"):
        yield read_pool(block, catalog, cluster=facts)
    if cluster.has("node_config") and not cluster.flag("remove_default_node_pool") and not cluster.has("node_pool"):
        yield read_pool(cluster, catalog, name="default-pool", cluster=facts)


def read_pool(
    pool: Fields,
    catalog: Catalog,
    *,
    name: str = "",
    cluster: ClusterFacts | None = None,
) -> Pool | None:
    """Return the pool of one attribute map; `name` stands in where it has none: then the map is a cluster's own."""
    cluster = cluster or ClusterFacts()
    config = pool.block("node_config")
    doubts = list(unread_keys(config, TERRAFORM_NODE_CONFIG) if name else unread_keys(pool, TERRAFORM_POOL))
    doubts += [*_doubts(config), *cluster.doubts]
    zones, zone_doubts = _where(pool, cluster)
    low, high = _counts(pool, max(1, len(zones)))
    if not pool.block("autoscaling").number("total_max_node_count"):
        doubts += zone_doubts
    gpu = next(config.blocks("guest_accelerator"), Fields({}, config.at("guest_accelerator"), pool.faults))
    sharing = gpu.block("gpu_sharing_config")
    placement = pool.block("placement_policy")
    shown = name or pool.text("name", "name_prefix", required=True)
    labels, label_doubts = _labels(config)
    doubts += label_doubts
    if not pool.has("autoscaling") and not any(pool.has(key) for key in ("node_count", "initial_node_count")):
        doubts.append(
            doubt(pool, "no number of nodes is said: none is counted, there may be some", "PROVEN", may_grow=True)
        )
    ssds = config.block("ephemeral_storage_local_ssd_config", "ephemeral_storage_config")
    facts = PoolFacts(
        name=shown,
        source=pool.faults.source(pool.path),
        machine_type=config.text("machine_type") or "e2-medium",
        version=_known(pool, "version"),
        image=config.text("image_type"),
        disk_gib=config.number("disk_size_gb", minimum=10)
        or config.block("boot_disk").number("size_gb", minimum=10)
        or 100,
        ephemeral_ssds=ssds.number("local_ssd_count"),
        cache_ssds=ssds.number("data_cache_count") or 0,
        raw_ssds=config.block("local_nvme_ssd_block_config").number("local_ssd_count") or 0,
        extra_ssds=config.number("local_ssd_count") or 0,
        labels=labels,
        taints=read_taints(config, "taint", "effective_taints"),
        gpu_type=gpu.text("type"),
        gpu_count=gpu.number("count") or 0,
        gpu_partition=gpu.text("gpu_partition_size"),
        gpu_sharing=sharing.text("gpu_sharing_strategy"),
        gpu_clients=sharing.number("max_shared_clients_per_gpu") or 1,
        gpu_driver=gpu.block("gpu_driver_installation_config").text("gpu_driver_version"),
        provisioning=provisioning_of(config, "flex_start"),
        zones=zones,
        min_nodes=low,
        max_nodes=high,
        max_pods=pool.number("max_pods_per_node", minimum=1) or cluster.max_pods or 110,
        placement=placement.text("policy_name") or ("compact" if placement.text("type") == "COMPACT" else ""),
        tpu_topology=placement.text("tpu_topology"),
        reservation=reservation_of(config.block("reservation_affinity"), "consume_reservation_type"),
        queued=pool.block("queued_provisioning").flag("enabled"),
        streaming=_streams(config, default=cluster.streaming),
        one_thread=config.block("advanced_machine_features").number("threads_per_core") == 1,
        confidential=config.block("confidential_nodes").flag("enabled") or cluster.confidential,
        calico=cluster.calico,
        gcs_fuse=cluster.gcs_fuse,
        hugepages=huge_pages(
            config.block("linux_node_config").block("hugepages_config"), "hugepage_size_2m", "hugepage_size_1g"
        ),
        sandbox=_sandbox(config),
        doubts=tuple(doubts),
        reservation_nodes=cluster.reservations,
    )
    place = Fields({}, config.at("machine_type"), pool.faults)
    return make_pool(facts, catalog, place) if shown else None


def _labels(config: Fields) -> tuple[dict[str, str], list[Doubt]]:
    if _is_expression(config.data.get("labels")):
        return {}, [doubt(config, "its labels cannot be evaluated", may_grow=True, label="*")]
    labels = config.mapping("labels")
    known = {key: value for key, value in labels.items() if "${" not in key + value}
    unknown = ["*" if "${" in key else key for key in labels if key not in known]
    return known, [doubt(config, f"its label {key} cannot be evaluated", may_grow=True, label=key) for key in unknown]


def _doubts(config: Fields) -> Iterator[Doubt]:
    for key in ("sole_tenant_config", "node_group"):
        if config.has(key):
            yield doubt(config, "sole tenancy: its hosts hold no more nodes than were reserved", "UNKNOWN")
    yield from _of_logging(config)


def _of_logging(config: Fields) -> Iterator[Doubt]:
    if config.text("logging_variant") == "MAX_THROUGHPUT":
        yield doubt(config, "the logging agent for high throughput asks for more than is counted here", "UNKNOWN")


def _streams(config: Fields, *, default: bool) -> bool:
    stream = config.block("gcfs_config")
    preloads = any(disk.text("mode") == "CONTAINER_IMAGE_CACHE" for disk in config.blocks("secondary_boot_disks"))
    return preloads or (stream.flag("enabled") if stream.data else default)


def _sandbox(config: Fields) -> str:
    return config.block("sandbox_config").text("sandbox_type", "type").lower()


def _is_expression(value: object) -> bool:
    return isinstance(value, str) and "${" in value


def _known(item: Fields, *keys: str) -> str:
    values = (item.data.get(key) for key in keys)
    return next((value for value in values if isinstance(value, str) and value and "${" not in value), "")


def _is_zone(location: str) -> bool:
    return location.count("-") >= 2


def _zones(item: Fields) -> tuple[str, ...]:
    value = item.data.get("node_locations")
    if _is_expression(value) or (isinstance(value, list) and any(_is_expression(zone) for zone in value)):
        return ()
    return tuple(item.texts("node_locations"))


def _where(pool: Fields, cluster: ClusterFacts) -> tuple[tuple[str, ...], tuple[Doubt, ...]]:
    is_said = pool.has("node_locations")
    location = _known(pool, "location", "zone", "region") or cluster.location
    zones = _zones(pool) or (() if is_said else cluster.zones) or ((location,) if _is_zone(location) else ())
    if zones:
        return zones, ()
    where = f"region {location}" if location else "this pool"
    known = (location,) if location else ()
    return known, (doubt(pool, _ALL_ZONES.format(where=where), "PROVEN", may_grow=True),)


def _counts(pool: Fields, zones: int) -> tuple[int, int]:
    scaling = pool.block("autoscaling")
    if scaling.data:
        total = scaling.number("total_max_node_count")
        if total:
            return scaling.number("total_min_node_count") or 0, total
        return (scaling.number("min_node_count") or 0) * zones, (scaling.number("max_node_count") or 0) * zones
    count = (pool.number("node_count", "initial_node_count") or 0) * zones
    return count, count
