"""`terraform show -json` (plan format 1.2, state format 1.0) and raw terraform.tfstate become node pools."""

from __future__ import annotations

from collections.abc import Iterator

from symphony_charts.formats.field_reader import Faults, Fields
from symphony_charts.placement.machines.catalog import Catalog
from symphony_charts.placement.pools.pool import Pool
from symphony_charts.placement.pools.terraform import CLUSTER, NODE_POOL, pools_of_cluster, read_pool

__all__ = ["read_show", "read_state"]


def read_show(data: dict[str, object], faults: Faults, catalog: Catalog) -> list[Pool]:
    """The pools of `terraform show -json` of a plan or a state."""
    root = "planned_values" if "planned_values" in data else "values"
    top = Fields.of(data, "", faults).block(root).block("root_module")
    pools: list[Pool | None] = []
    for resource in _resources(top):
        values = resource.block("values")
        if resource.text("type") == NODE_POOL:
            _refuse_unknown(data, resource)
            pools.append(read_pool(values, catalog))
        elif resource.text("type") == CLUSTER:
            pools += pools_of_cluster(values, catalog)
    return _unique(pools)


def read_state(data: dict[str, object], faults: Faults, catalog: Catalog) -> list[Pool]:
    """The pools of a raw state file, version 4."""
    top = Fields.of(data, "", faults)
    if top.number("version") != 4:
        top.fault(
            f"state version {data.get('version')} is not supported", "version", "terraform 0.12 and later write 4"
        )
        return []
    pools: list[Pool | None] = []
    for resource in top.blocks("resources"):
        if resource.text("mode") not in ("", "managed") or resource.text("type") not in (NODE_POOL, CLUSTER):
            continue
        for instance in resource.blocks("instances"):
            attributes = instance.block("attributes")
            if resource.text("type") == NODE_POOL:
                pools.append(read_pool(attributes, catalog))
            else:
                pools += pools_of_cluster(attributes, catalog)
    return _unique(pools)


def _unique(pools: list[Pool | None]) -> list[Pool]:
    """Without the pools that a cluster's state repeats: Terraform lists pools of their own there as well."""
    result: dict[str, Pool] = {}
    for pool in pools:
        if pool is not None:
            result.setdefault(pool.name, pool)
    return list(result.values())


def _resources(module: Fields) -> Iterator[Fields]:
    yield from sorted(module.blocks("resources"), key=lambda item: item.text("type") != NODE_POOL)
    for child in module.blocks("child_modules"):
        yield from _resources(child)


def _refuse_unknown(data: dict[str, object], resource: Fields) -> None:
    """A fault where the plan says that the machine type is known only after apply."""
    address = resource.text("address")
    for change in Fields.of(data, "", resource.faults).blocks("resource_changes"):
        unknown = change.block("change").block("after_unknown").data.get("node_config")
        if change.text("address") == address and isinstance(unknown, list):
            for block in unknown:
                if isinstance(block, dict) and block.get("machine_type") is True:
                    resource.fault("machine_type is known only after apply", "", "apply first, then give the state")
