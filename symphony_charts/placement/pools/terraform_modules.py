"""Calls of Terraform modules that make node pools are read where they are literal, else refused with what to give.

Known is terraform-google-modules/kubernetes-engine with its submodules: their arguments become the attributes of
google_container_node_pool, as the module itself would write them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from symphony_charts.formats.field_reader import Faults, Fields
from symphony_charts.placement.machines.catalog import Catalog
from symphony_charts.placement.pools.known_cluster_keys import MODULE_CALL
from symphony_charts.placement.pools.known_keys import keys, unread_keys
from symphony_charts.placement.pools.pool import Pool, Pools
from symphony_charts.placement.pools.terraform import ClusterFacts, read_cluster_facts, read_pool

__all__ = ["read_modules"]

_PLAN = "give the output of `terraform show -json PLAN` instead"
_SOURCE = re.compile(
    r"(?:terraform-google-modules/(?:terraform-google-)?kubernetes-engine|terraform-google-kubernetes-engine)"
)
_RELATIVE = re.compile(r"^\.{1,2}/(?:.*/)?modules/([\w-]+)$|^\.\./\.\.(?:/\.\.)*/?$")
_CLUSTERS = frozenset(
    {
        "", "private-cluster", "beta-private-cluster", "beta-public-cluster", "private-cluster-update-variant",
        "beta-private-cluster-update-variant", "beta-public-cluster-update-variant", "safer-cluster",
        "safer-cluster-update-variant",
    }
)  # fmt: skip
_AUTOPILOT = frozenset({"beta-autopilot-private-cluster", "beta-autopilot-public-cluster", "gke-autopilot-cluster"})
# The module's name of a key -> where the resource has it.
_CONFIG = {
    "machine_type": "machine_type", "image_type": "image_type", "disk_size_gb": "disk_size_gb", "spot": "spot",
    "preemptible": "preemptible", "flex_start": "flex_start", "local_ssd_count": "local_ssd_count",
    "logging_variant": "logging_variant",
}  # fmt: skip
_BLOCKS = {
    "enable_gcfs": ("gcfs_config", "enabled"),
    "enable_confidential_nodes": ("confidential_nodes", "enabled"),
    "threads_per_core": ("advanced_machine_features", "threads_per_core"),
    "local_ssd_ephemeral_storage_count": ("ephemeral_storage_local_ssd_config", "local_ssd_count"),
    "ephemeral_storage_local_ssd_data_cache_count": ("ephemeral_storage_local_ssd_config", "data_cache_count"),
    "local_ssd_ephemeral_count": ("ephemeral_storage_config", "local_ssd_count"),
    "local_nvme_ssd_count": ("local_nvme_ssd_block_config", "local_ssd_count"),
    "consume_reservation_type": ("reservation_affinity", "consume_reservation_type"),
    "secondary_boot_disk": ("secondary_boot_disks", "disk_image"),
    "node_affinity": ("sole_tenant_config", "node_affinity"),
    "windows_node_config_os_version": ("windows_node_config", "osversion"),
}
_ACCELERATOR = {"accelerator_type": "type", "accelerator_count": "count", "gpu_partition_size": "gpu_partition_size"}
_SHARING = {"gpu_sharing_strategy", "max_shared_clients_per_gpu"}
_POOL = {"max_pods_per_node", "version"}
_SCALING = {
    "min_count": "min_node_count", "max_count": "max_node_count", "total_min_count": "total_min_node_count",
    "total_max_count": "total_max_node_count",
}  # fmt: skip
_PLACEMENT = {"placement_policy": "type", "policy_name": "policy_name", "tpu_topology": "tpu_topology"}
_READ = {
    "name", "autoscaling", "node_count", "initial_node_count", "node_locations", "queued_provisioning",
    "sandbox_enabled", "gpu_driver_version", "reservation_affinity_values", "secondary_boot_disk_mode",
    *_CONFIG, *_BLOCKS, *_ACCELERATOR, *_SHARING, *_POOL, *_SCALING, *_PLACEMENT,
}  # fmt: skip
_KEYS = keys(
    " ".join(_READ),
    "auto_repair auto_upgrade auto_upgrade_time location_policy strategy max_surge max_unavailable disk_type"
    " service_account service_account_name min_cpu_platform enable_gvnic enable_fast_socket enable_secure_boot"
    " enable_integrity_monitoring enable_confidential_storage pod_range enable_private_nodes max_run_duration"
    " total_egress_bandwidth_tier node_metadata boot_disk_kms_key storage_pools cpu_manager_policy cpu_cfs_quota"
    " cpu_cfs_quota_period insecure_kubelet_readonly_port_enabled pod_pids_limit container_log_max_size"
    " container_log_max_files image_gc_low_threshold_percent image_gc_high_threshold_percent image_minimum_gc_age"
    " image_maximum_gc_age allowed_unsafe_sysctls enable_nested_virtualization performance_monitoring_unit"
    " local_ssd_encryption_mode provisioned_iops provisioned_throughput reservation_affinity_key"
    " node_pool_soak_duration batch_soak_duration batch_percentage batch_node_count"
    " respect_pdb_during_node_pool_deletion",
)
_DRIVERS = {
    "gcs_fuse_csi_driver": "gcs_fuse_csi_driver", "filestore_csi_driver": "gcp_filestore_csi_driver",
    "lustre_csi_driver": "lustre_csi_driver", "parallelstore_csi_driver": "parallelstore_csi_driver",
}  # fmt: skip
_OFF = (None, "", 0, "0", False, "false")


def read_modules(calls: Iterable[tuple[str, dict[str, object]]], faults: Faults, catalog: Catalog) -> Pools:
    """The pools of the module calls (path, arguments) that are known to make some."""
    pools: list[Pool] = []
    growing: list[str] = []
    for path, body in calls:
        name = _submodule(str(body.get("source", "")))
        call = Fields.of(body, path, faults)
        if name == "gke-node-pool":
            pools += filter(None, [read_pool(_without_source(call), catalog)])
        elif name in _AUTOPILOT:
            growing.append("an Autopilot cluster, which makes its nodes itself")
        elif name in _CLUSTERS:
            pools += _of_cluster(call, catalog)
            if call.block("cluster_autoscaling").flag("enabled"):
                growing.append("node auto-provisioning, which may add pools")
        elif "node_pools" in body or "node_config" in body:
            call.fault(f"the node pools of module {body.get('source')} are its own to make", "source", _PLAN)
    return Pools(pools=tuple(pools), grows=tuple(growing))


def _submodule(source: str) -> str | None:
    """The name of a submodule of kubernetes-engine, empty for the module itself; None for any other module."""
    if _SOURCE.search(source):
        inner = re.search(r"//modules/([\w-]+)", source) or re.search(r"/modules/([\w-]+)", source)
        return inner[1] if inner else ""
    relative = _RELATIVE.match(source)
    return (relative[1] or "") if relative else None


def _without_source(call: Fields) -> Fields:
    """The arguments of gke-node-pool, which are the resource's attributes."""
    names = {"source", "project_id", "for_each", "count", "providers", "autoscaling", "kubernetes_version"}
    body = {key: value for key, value in call.data.items() if key not in names or key == "autoscaling"}
    body.setdefault("name", call.path.rsplit(".", 1)[-1])
    return Fields(body, call.path, call.faults)


def _of_cluster(call: Fields, catalog: Catalog) -> Iterator[Pool]:
    zones = call.data.get("zones")
    location = call.data.get("region") if call.data.get("regional", True) is not False else None
    said = {
        "node_locations": zones,
        "location": location,
        "network_policy": {"enabled": call.data.get("network_policy")},
    }
    said |= {key: call.data[key] for key in ("datapath_provider", "default_max_pods_per_node") if key in call.data}
    said |= {
        "addons_config": {
            f"{name}_config": {"enabled": call.data[key]} for key, name in _DRIVERS.items() if key in call.data
        },
        "confidential_nodes": {"enabled": call.data.get("enable_confidential_nodes", False)},
        "node_pool_defaults": {
            "node_config_defaults": {
                "gcfs_config": {"enabled": call.data.get("enable_gcfs", False)},
                "logging_variant": call.data.get("logging_variant"),
            }
        },
    }
    if "${" in str(call.data.get("network_policy")):
        said["network_policy"] = {"enabled": True}  # the smaller node, since it is not known
    cluster = read_cluster_facts(Fields.of(said, call.path, call.faults))
    cluster = replace(cluster, doubts=(*cluster.doubts, *unread_keys(call, MODULE_CALL)))
    for is_windows, key in ((False, "node_pools"), (True, "windows_node_pools")):
        if call.data.get(key) is None and not is_windows:
            # The module's default: one pool of its own sizes.
            call.data["node_pools"] = [{"name": "default-node-pool"}]
        for item in call.blocks(key):
            pool = _pool(call, item, cluster, catalog, is_windows=is_windows)
            if pool is not None:
                yield pool


def _pool(call: Fields, item: Fields, cluster: ClusterFacts, catalog: Catalog, *, is_windows: bool) -> Pool | None:
    name = item.text("name", required=True)
    data = item.data
    config: dict[str, object] = {new: data[key] for key, new in _CONFIG.items() if data.get(key) not in _OFF}
    for key, (block, inner) in _BLOCKS.items():
        if data.get(key) not in _OFF:
            config[block] = {**_map(config.get(block)), inner: data[key]}
    if is_windows:
        config.setdefault("image_type", "WINDOWS_LTSC_CONTAINERD")
    if data.get("sandbox_enabled", call.data.get("sandbox_enabled")) not in _OFF:
        config["sandbox_config"] = {"sandbox_type": "gvisor"}
    if data.get("secondary_boot_disk") not in _OFF:
        mode = data.get("secondary_boot_disk_mode", "CONTAINER_IMAGE_CACHE")
        config["secondary_boot_disks"] = {"mode": mode, "disk_image": data["secondary_boot_disk"]}
    if data.get("accelerator_count") not in _OFF:
        gpu: dict[str, object] = {new: data[key] for key, new in _ACCELERATOR.items() if data.get(key) not in _OFF}
        sharing = {key: data[key] for key in sorted(_SHARING) if data.get(key) not in _OFF}
        if data.get("gpu_driver_version") not in _OFF:
            gpu["gpu_driver_installation_config"] = {"gpu_driver_version": data["gpu_driver_version"]}
        config["guest_accelerator"] = [gpu | ({"gpu_sharing_config": sharing} if sharing else {})]
    values = data.get("reservation_affinity_values")
    if isinstance(values, str) and "reservation_affinity" in config:
        config["reservation_affinity"] = {
            **_map(config["reservation_affinity"]), "values": [value.strip() for value in values.split(",")],
        }  # fmt: skip
    config["labels"] = _labels(call, name)
    config["taint"] = _of_pool(call, "node_pools_taints", name)
    config["linux_node_config"] = {"hugepages_config": _huge_pages(call, name)}
    pool = {key: data[key] for key in sorted(_POOL) if data.get(key) not in _OFF}
    pool |= {"name": name, "node_config": config, **_counts(data), "location": cluster.location}
    if data.get("node_locations") not in _OFF:
        where = data["node_locations"]
        pool["node_locations"] = where.split(",") if isinstance(where, str) and "${" not in where else where
    pool["placement_policy"] = {new: data[key] for key, new in _PLACEMENT.items() if data.get(key) not in _OFF}
    pool["queued_provisioning"] = {"enabled": data.get("queued_provisioning", False)}
    return read_pool(
        Fields(pool, item.path, item.faults), catalog, cluster=cluster, more_doubts=unread_keys(item, _KEYS)
    )


def _counts(data: Mapping[str, object]) -> dict[str, object]:
    """The module scales from 1 to 100 nodes a zone, unless it is told otherwise."""
    if data.get("autoscaling", True) in (False, "false"):
        return {"node_count": data.get("node_count", 1)}
    scaling = {new: data[key] for key, new in _SCALING.items() if data.get(key) not in (None, "")}
    if "total_max_node_count" not in scaling:
        scaling = {"min_node_count": 1, "max_node_count": 100} | scaling
    return {"autoscaling": scaling}


def _map(value: object) -> dict[str, object]:
    return dict(value) if isinstance(value, dict) else {}


def _labels(call: Fields, name: str) -> object:
    """Labels of the module, those of all pools, and those of this one."""
    given = call.data.get("node_pools_labels")
    if isinstance(given, str):
        return given  # an expression, which the reader of pools names as such
    labels: dict[str, object] = {"cluster_name": call.data.get("name"), "node_pool": name}
    by_pool = _map(given)
    for switch in ("cluster_name", "node_pool"):
        if _map(by_pool.get("default_values")).get(switch) in (False, "false"):
            del labels[switch]
    return {
        key: value
        for key, value in {**labels, **_map(by_pool.get("all")), **_map(by_pool.get(name))}.items()
        if value is not None
    }


def _of_pool(call: Fields, key: str, name: str) -> object:
    """The lists of all pools and of this one, together; the expression where it is none."""
    given = call.data.get(key)
    if isinstance(given, str):
        return given
    lists = [_map(given).get(part) for part in ("all", name)]
    expression = next((value for value in lists if isinstance(value, str)), None)
    return expression or [item for value in lists if isinstance(value, list) for item in value]


def _huge_pages(call: Fields, name: str) -> dict[str, object]:
    pages: dict[str, object] = {}
    for size in ("hugepage_size_2m", "hugepage_size_1g"):
        given = _map(call.data.get(f"node_pools_{size}"))
        value = given.get(name) or given.get("all")
        if value not in _OFF:
            pages[size] = value
    return pages
