"""`terraform show -json` (plan format 1.2, state format 1.0) and raw terraform.tfstate become node pools."""

from __future__ import annotations

from collections.abc import Iterator

from symphony_charts.formats.field_reader import Fields
from symphony_charts.placement.machines.catalog import Catalog
from symphony_charts.placement.pools.node_config import ClusterSettings
from symphony_charts.placement.pools.pool import Pool, Pools
from symphony_charts.placement.pools.terraform import (
    CLUSTER,
    NODE_POOL,
    autoscaled,
    pools_of_cluster,
    read_cluster_settings,
    read_pool,
)

__all__ = ["read_show", "read_state"]


def read_show(file: Fields, catalog: Catalog) -> Pools:
    """Return the pools of `terraform show -json` of a plan or a state."""
    top = file.block("planned_values" if "planned_values" in file.data else "values").block("root_module")
    resources = [(resource.text("type"), resource.block("values"), resource) for resource in _resources(top)]
    for kind, _, resource in resources:
        if kind == NODE_POOL:
            _refuse_unknown(file, resource)
    return _pools_of([(kind, values) for kind, values, _ in resources], catalog)


def _pools_of(resources: list[tuple[str, Fields]], catalog: Catalog) -> Pools:
    """Return the pools of all resources (type, attributes), each with what its cluster says."""
    sizes = {
        values.text("name"): count
        for kind, values in resources
        if kind == "google_compute_reservation"
        and (count := values.block("specific_reservation").number("count")) is not None
    }
    clusters = [values for kind, values in resources if kind == CLUSTER]
    settings = {cluster.text("name"): read_cluster_settings(cluster, sizes) for cluster in clusters}
    fallback = next(iter(settings.values())) if len(settings) == 1 else ClusterSettings(reservations=sizes)
    pools = [
        read_pool(values, catalog, settings.get(values.text("cluster").rsplit("/", 1)[-1], fallback))
        for kind, values in resources
        if kind == NODE_POOL
    ]
    for cluster in clusters:
        pools += pools_of_cluster(cluster, catalog, settings[cluster.text("name")])
    return Pools(
        pools=tuple(_unique(pools)), autoscaled=tuple(reason for cluster in clusters for reason in autoscaled(cluster))
    )


def read_state(file: Fields, catalog: Catalog) -> Pools:
    """Return the pools of a raw state file, version 4."""
    if file.number("version") != 4:
        file.fault(
            f"state version {file.data.get('version')} is not supported", "version", "terraform 0.12 and later write 4"
        )
        return Pools()
    kinds = (NODE_POOL, CLUSTER, "google_compute_reservation")
    return _pools_of(
        [
            (resource.text("type"), instance.block("attributes"))
            for resource in file.blocks("resources")
            if resource.text("mode") in ("", "managed") and resource.text("type") in kinds
            for instance in resource.blocks("instances")
        ],
        catalog,
    )


def _unique(pools: list[Pool | None]) -> list[Pool]:
    """Drop pools that a cluster's state repeats: Terraform lists separate pools there as well."""
    result: dict[str, Pool] = {}
    for pool in pools:
        if pool is not None:
            result.setdefault(pool.name, pool)
    return list(result.values())


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
                    resource.fault("machine_type is known only after apply", "", "apply first, then give the state")
