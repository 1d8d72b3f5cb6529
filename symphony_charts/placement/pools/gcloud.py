"""Read gcloud's descriptions of node pools, clusters and machine types.

Schema: container/v1 NodePool. int64 fields are texts there, int32 numbers; both are accepted for either. Sizes are per
zone unless they are `total*`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import msgspec

from symphony_charts.formats.field_reader import Fields
from symphony_charts.placement.catalog import Catalog, Machine
from symphony_charts.placement.pools.gke_node_pool import make_pool
from symphony_charts.placement.pools.node_config import (
    ClusterSettings,
    autoscaled,
    cluster_settings,
    in_camel_case,
    read_node_config,
    uncertainty,
    unknown_keys,
)
from symphony_charts.placement.pools.pool import Pool, Pools


def read_cluster(cluster: Fields, catalog: Catalog) -> Pools:
    """Return the pools of one `gcloud container clusters describe`."""
    settings = cluster_settings(cluster, tuple(cluster.texts("locations")), in_camel_case)
    read = [read_node_pool(pool, catalog, settings) for pool in cluster.blocks("nodePools")]
    return Pools(pools=tuple(filter(None, read)), autoscaled=tuple(autoscaled(cluster)))


def read_node_pool(pool: Fields, catalog: Catalog, cluster: ClusterSettings | None = None) -> Pool | None:
    """Return the pool of a NodePool of GKE's API; None if it lacks a name or a known machine type."""
    cluster = cluster or ClusterSettings()
    name = pool.text("name", required=True)
    zones = tuple(pool.texts("locations")) or cluster.zones
    settings = read_node_config(pool, name, zones, cluster, in_camel_case)
    uncertainties = list(unknown_keys(pool, "PACKABLE"))
    status = pool.text("status")
    if status not in ("", "RUNNING", "PROVISIONING", "RECONCILING"):
        uncertainties.append(uncertainty(pool, f"its status is {status}", "UNKNOWN"))
    uncertainties += settings.uncertainties
    if not zones and not pool.block("autoscaling").number("totalMaxNodeCount"):
        text = "its zones are not set: symph counts one, and there may be more"
        uncertainties.append(uncertainty(pool, text, "PROVEN", may_grow=True))
    return make_pool(replace(settings, uncertainties=tuple(uncertainties)), catalog)


def read_machine_types(items: Iterable[Fields], catalog: Catalog) -> Iterator[Machine]:
    """Yield the machine types of `gcloud compute machine-types list --format=json`, each name once."""
    seen = set()
    for item in items:
        name = item.text("name", required=True)
        cpus, memory = item.number("guestCpus", minimum=1), item.number("memoryMb", minimum=1)
        if cpus is None or memory is None:
            item.fault("guestCpus or memoryMb is missing")
            continue
        if name in seen:
            continue
        seen.add(name)
        gpu = next(item.blocks("accelerators"), Fields({}, item.at("accelerators"), item.faults))
        before = catalog.get(name) or Machine(name=name, family="", vcpu=cpus, memory_mib=memory)
        kind = gpu.text("guestAcceleratorType")
        is_tpu = kind.startswith("ct") or "tpu" in kind
        count = gpu.number("guestAcceleratorCount") or 0
        yield msgspec.structs.replace(
            before,
            family=name.split("-")[0],
            arch="arm64" if item.text("architecture").upper() == "ARM64" else "amd64",
            vcpu=cpus,
            memory_mib=memory,
            shared=item.flag("isSharedCpu"),
            gpu="" if is_tpu else kind,
            gpus=0 if is_tpu else count,
            sources=("gcloud",),
        )
