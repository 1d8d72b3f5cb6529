"""Read node pools from Terraform's attributes, and from the JSON of a plan or a state.

A configuration in JSON, a plan and a state have the same attributes; blocks are objects, or lists of one. The readers
of those files pass one attribute map per pool, and the settings of its cluster.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from symphony_charts.formats.field_reader import Faults, Fields
from symphony_charts.placement.catalog import Catalog
from symphony_charts.placement.pools.gke_node_pool import make_pool
from symphony_charts.placement.pools.node_config import (
    ClusterSettings,
    autoscaled,
    cluster_settings,
    read_node_config,
    uncertainty,
    unknown_keys,
)
from symphony_charts.placement.pools.pool import ELSEWHERE, Pool, Pools, Uncertainty, is_zone

NODE_POOL = "google_container_node_pool"
CLUSTER = "google_container_cluster"
RESERVATION = "google_compute_reservation"


def read_cluster_settings(cluster: Fields, reservations: Mapping[str, int]) -> ClusterSettings:
    """Return the settings that hold for a cluster's pools; a zonal cluster's zone is one of its zones."""
    location, zones = cluster.text("location", "zone", "region"), tuple(cluster.texts("node_locations"))
    if is_zone(location) and location not in zones:
        zones = (location, *zones)
    defaults = cluster.block("node_pool_defaults").block("node_config_defaults")
    return replace(
        cluster_settings(cluster, zones, str),
        location=location,
        max_pods=cluster.number("default_max_pods_per_node", minimum=1),
        streaming=defaults.block("gcfs_config").flag("enabled"),
        reservations=reservations,
    )


def pools_of_cluster(cluster: Fields, catalog: Catalog, settings: ClusterSettings) -> Iterator[Pool | None]:
    """Yield the pools written inside a cluster resource: its `node_pool` blocks and its default pool."""
    for block in cluster.blocks("node_pool"):
        yield read_pool(block, catalog, settings)
    if cluster.has("node_config") and not cluster.flag("remove_default_node_pool") and not cluster.has("node_pool"):
        yield read_pool(cluster, catalog, settings, name="default-pool")


def read_pool(pool: Fields, catalog: Catalog, cluster: ClusterSettings, *, name: str = "") -> Pool | None:
    """Return the pool of one attribute map; `name` is set for a cluster's own map, for its default pool."""
    uncertainties = list(unknown_keys(pool.block("node_config"), "UNKNOWN") if name else unknown_keys(pool, "PACKABLE"))
    zones, zone_uncertainties = _where(pool, cluster)
    shown = name or pool.text("name", "name_prefix", required=True)
    settings = read_node_config(pool, shown, zones, cluster, str)
    uncertainties += settings.uncertainties
    if not pool.block("autoscaling").number("total_max_node_count"):
        uncertainties += zone_uncertainties
    if not any(pool.has(key) for key in ("autoscaling", "node_count", "initial_node_count")):
        text = "the number of nodes is not set: symph counts none, and there may be some"
        uncertainties.append(uncertainty(pool, text, "PROVEN", may_grow=True))
    return make_pool(replace(settings, uncertainties=tuple(uncertainties)), catalog)


def _where(pool: Fields, cluster: ClusterSettings) -> tuple[tuple[str, ...], tuple[Uncertainty, ...]]:
    location = pool.text("location", "zone", "region") or cluster.location
    zones = tuple(pool.texts("node_locations")) or cluster.zones or ((location,) if is_zone(location) else ())
    if zones:
        return zones, ()
    where = f"region {location}" if location else "this pool"
    text = f"the zones of {where} are not set: symph counts one, and there may be more"
    return (location,) if location else (), (uncertainty(pool, text, "PROVEN", may_grow=True),)


def read_show(file: Fields, catalog: Catalog) -> Pools:
    """Return the pools of `terraform show -json` of a plan or a state."""
    top = file.block("planned_values" if "planned_values" in file.data else "values").block("root_module")
    resources = list(_resources(top))
    for resource in resources:
        if resource.text("type") == NODE_POOL:
            _refuse_unknown(file, resource)
    named = [(resource.text("type"), resource.text("name"), resource.block("values")) for resource in resources]
    return pools_of_resources(named, catalog, file.faults)


def pools_of_resources(resources: Sequence[tuple[str, str, Fields]], catalog: Catalog, faults: Faults) -> Pools:
    """Return the pools of all resources (type, name of the resource, attributes), with their clusters' settings.

    None is a fault.
    """
    sizes = {
        str(values.data.get("name")): count
        for kind, _, values in resources
        if kind == RESERVATION and (count := values.block("specific_reservation").number("count")) is not None
    }
    clusters = [
        (name, values, read_cluster_settings(values, sizes)) for kind, name, values in resources if kind == CLUSTER
    ]
    # A configuration names a cluster by its resource, a state by its name.
    settings = {f"{CLUSTER}.{name}": found for name, _, found in clusters}
    settings |= {str(values.data.get("name")): found for _, values, found in clusters}
    only = clusters[0][2] if len(clusters) == 1 else ClusterSettings(reservations=sizes)
    read = (
        read_pool(values, catalog, settings.get(_cluster_of(values), only))
        for kind, _, values in resources
        if kind == NODE_POOL
    )
    pools = list(filter(None, read))
    # A cluster's state repeats its separate pools.
    known = {pool.name for pool in pools}
    for _, values, found in clusters:
        pools += (pool for pool in pools_of_cluster(values, catalog, found) if pool and pool.name not in known)
    named_reservations = Counter(pool.reservation for pool in pools if pool.reservation in sizes)
    for number, pool in enumerate(pools):
        if named_reservations[pool.reservation] > 1:
            shared = Uncertainty(text=f"reservation {pool.reservation} is shared with other pools")
            pools[number] = replace(pool, uncertainties=(*pool.uncertainties, shared))
    growing = tuple(reason for _, values, _ in clusters for reason in autoscaled(values))
    if not pools and not faults.problems:
        what = f"this file has no GKE node pools{''.join(f': {reason}' for reason in growing[:1])}"
        faults.add(what, "", f"give the output of `terraform show -json PLAN` if modules make them; else {ELSEWHERE}")
    return Pools(pools=tuple(pools), autoscaled=growing)


def _cluster_of(pool: Fields) -> str:
    text = str(pool.data.get("cluster", ""))
    reference = re.search(rf"{CLUSTER}\.[\w-]+", text)
    return reference[0] if reference else text.rsplit("/", 1)[-1]


def _resources(module: Fields) -> Iterator[Fields]:
    yield from sorted(module.blocks("resources"), key=lambda item: item.text("type") != NODE_POOL)
    for child in module.blocks("child_modules"):
        yield from _resources(child)


def _refuse_unknown(file: Fields, resource: Fields) -> None:
    address = resource.text("address")
    for change in file.blocks("resource_changes"):
        unknown = change.block("change").block("after_unknown").data.get("node_config")
        if change.text("address") == address and isinstance(unknown, list):
            for block in unknown:
                if isinstance(block, dict) and block.get("machine_type") is True:
                    resource.fault("machine_type is known only after apply", "", "apply it first, then give the state")
