"""`gcloud container node-pools list|describe` and `clusters describe` output (JSON or YAML) becomes node pools.

Schema: container/v1 NodePool. int64 fields are texts there, int32 numbers; both are accepted for either. Sizes are per
zone unless they are `total*`.
"""

from __future__ import annotations

from dataclasses import replace

from symphony_charts.formats.field_reader import Fields
from symphony_charts.placement.machines.catalog import Catalog
from symphony_charts.placement.pools.gke_node_pool import make_pool
from symphony_charts.placement.pools.node_config import (
    NODE_DEFAULTS,
    POOL,
    ClusterSettings,
    addon_uncertainties,
    in_camel_case,
    read_node_config,
    uncertainty,
    unknown_keys,
)
from symphony_charts.placement.pools.pool import Pool, Pools

__all__ = ["read_cluster", "read_node_pool"]

_ALONE = ClusterSettings()


def read_cluster(cluster: Fields, catalog: Catalog) -> Pools:
    """Return the pools of one `gcloud container clusters describe`."""
    policy = cluster.block("networkPolicy").flag("enabled")
    dataplane_v2 = cluster.block("networkConfig").text("datapathProvider") == "ADVANCED_DATAPATH"
    confidential = cluster.block("confidentialNodes").flag("enabled")
    addons = cluster.block("addonsConfig")
    defaults = cluster.block("nodePoolDefaults").block("nodeConfigDefaults")
    settings = ClusterSettings(
        zones=tuple(cluster.texts("locations")),
        calico=policy and not dataplane_v2,
        confidential=confidential,
        gcs_fuse=addons.block("gcsFuseCsiDriverConfig").flag("enabled"),
        uncertainties=(*unknown_keys(defaults, NODE_DEFAULTS), *addon_uncertainties(addons, in_camel_case)),
    )
    read = [read_node_pool(pool, catalog, settings) for pool in cluster.blocks("nodePools")]
    autoscaled = []
    if cluster.block("autopilot").flag("enabled"):
        autoscaled.append("an Autopilot cluster, which makes its nodes itself")
    elif cluster.block("autoscaling").flag("enableNodeAutoprovisioning"):
        autoscaled.append("node auto-provisioning, which may add pools")
    return Pools(pools=tuple(pool for pool in read if pool is not None), autoscaled=tuple(autoscaled))


def read_node_pool(pool: Fields, catalog: Catalog, cluster: ClusterSettings = _ALONE) -> Pool | None:
    """Return the pool that a NodePool of GKE's API describes; None if it lacks a name or a known machine type."""
    config = pool.block("config")
    name = pool.text("name", required=True)
    zones = tuple(pool.texts("locations")) or cluster.zones
    low, high = _counts(pool, max(1, len(zones)))
    settings = read_node_config(pool, name, cluster, in_camel_case, ("taints",))
    uncertainties = list(unknown_keys(pool, POOL))
    status = pool.text("status")
    if status not in _STATES:
        uncertainties.append(uncertainty(pool, f"its status is {status}", "UNKNOWN"))
    uncertainties += settings.uncertainties
    if not zones and not pool.block("autoscaling").number("totalMaxNodeCount"):
        text = "its zones are not said: one is counted, there may be more"
        uncertainties.append(uncertainty(pool, text, "PROVEN", may_grow=True))
    settings = replace(
        settings,
        version=pool.text("version"),
        labels=config.mapping("labels"),
        zones=zones,
        min_nodes=low,
        max_nodes=high,
        max_pods=pool.block("maxPodsConstraint").number("maxPodsPerNode", minimum=1) or 110,
        uncertainties=tuple(uncertainties),
    )
    return make_pool(settings, catalog, Fields({}, config.at("machineType"), pool.faults)) if name else None


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
