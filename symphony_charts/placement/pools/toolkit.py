"""Blueprints of Google's Cluster Toolkit become node pools: the modules that make some, with their literal settings.

``$(vars.x)`` takes its value from the blueprint's own `vars`, or from the variables given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from symphony_charts.formats.field_reader import Fields, as_text
from symphony_charts.placement.machines.catalog import Catalog
from symphony_charts.placement.pools.known_cluster_keys import BLUEPRINT_MODULE
from symphony_charts.placement.pools.known_keys import keys, unread_keys
from symphony_charts.placement.pools.pool import Pool, Pools
from symphony_charts.placement.pools.terraform import read_pool

__all__ = ["read_blueprint"]

_POOL = "modules/compute/gke-node-pool"
_PLACEMENT = {"name": "policy_name"}
_ONE_THREAD = frozenset({"t2a", "t2d", "h3", "e2"})
_OPEN = re.compile(r"\$\(([^()]*)\)")
_VARIABLE = re.compile(r"\$\(vars\.(\w+)\)")
_CONFIG = {
    "machine_type": "machine_type", "image_type": "image_type", "disk_size_gb": "disk_size_gb", "spot": "spot",
    "enable_flex_start": "flex_start", "kubernetes_labels": "labels", "guest_accelerator": "guest_accelerator",
    "reservation_affinity": "reservation_affinity", "linux_node_config": "linux_node_config", "taints": "taint",
}  # fmt: skip
_READ = frozenset(
    {
        *_CONFIG, "name", "zones", "autoscaling_total_min_nodes", "autoscaling_total_max_nodes", "static_node_count",
        "enable_gcfs", "local_ssd_count_ephemeral_storage", "local_ssd_count_nvme_block", "threads_per_core",
        "placement_policy", "initial_node_count", "max_pods_per_node", "enable_queued_provisioning", "gke_version",
        "num_node_pools", "num_slices", "total_min_nodes", "total_max_nodes", "autoscaling_min_node_count",
        "autoscaling_max_node_count", "compact_placement",
    }
)  # fmt: skip
_KEYS = keys(
    " ".join(_READ),
    "project_id cluster_id internal_ghpc_module_id disk_type enable_secure_boot auto_repair auto_upgrade"
    " service_account_email service_account_scopes labels timeout_create timeout_update service_account"
    " additional_networks host_maintenance_interval upgrade_settings run_workload_script"
    " install_gpu_direct_manifests max_run_duration enable_private_nodes is_reservation_active",
)


def read_blueprint(top: Fields, catalog: Catalog, given: Mapping[str, object]) -> Pools:
    """The pools of a blueprint's deployment groups."""
    values = {**top.block("vars").data, **given}
    pools: list[Pool] = []
    for group in top.blocks("deployment_groups"):
        for module in group.blocks("modules"):
            if module.text("source").endswith(_POOL):
                pools += _pools(module, values, catalog)
    if not pools and not top.faults.problems:
        top.fault(
            f"no module of this blueprint is {_POOL}", "", "give the output of `terraform show -json PLAN` instead"
        )
    return Pools(pools=tuple(pools))


def _resolved(value: object, values: Mapping[str, object], depth: int = 9) -> object:
    if isinstance(value, dict):
        return {str(key): _resolved(inner, values, depth) for key, inner in value.items()}
    if isinstance(value, list):
        return [_resolved(inner, values, depth) for inner in value]
    if not isinstance(value, str) or "$(" not in value or not depth:
        return _OPEN.sub(r"${\1}", value) if isinstance(value, str) else value
    whole = _VARIABLE.fullmatch(value)
    if whole is not None and values.get(whole[1]) is not None:
        return _resolved(values[whole[1]], values, depth - 1)
    return _VARIABLE.sub(lambda match: as_text(values.get(match[1])) or f"${{vars.{match[1]}}}", value)


def _pools(module: Fields, values: Mapping[str, object], catalog: Catalog) -> Iterator[Pool]:
    raw = module.block("settings")
    # A setting that a module leaves out is the blueprint's variable of that name.
    said = {**{key: f"$(vars.{key})" for key in sorted(_READ & values.keys())}, **raw.data}
    settings = Fields.of(_resolved(said, values), raw.path, raw.faults)
    data = settings.data
    config: dict[str, object] = {new: data[key] for key, new in _CONFIG.items() if data.get(key) is not None}
    config.setdefault("machine_type", "c2-standard-60")
    config["gcfs_config"] = {"enabled": data.get("enable_gcfs", False)}
    config["ephemeral_storage_local_ssd_config"] = {"local_ssd_count": data.get("local_ssd_count_ephemeral_storage")}
    config["local_nvme_ssd_block_config"] = {"local_ssd_count": data.get("local_ssd_count_nvme_block")}
    machine = catalog.get(str(config["machine_type"]))
    if machine is not None and not (machine.gpus or machine.chips or machine.family in _ONE_THREAD):
        # The toolkit's own default, 0, turns the second thread of each core off.
        config["advanced_machine_features"] = {"threads_per_core": 2 if data.get("threads_per_core", 0) == 2 else 1}
    affinity = config.get("reservation_affinity")
    if isinstance(affinity, dict):
        named = [
            entry.get("name") for entry in affinity.pop("specific_reservations", None) or [] if isinstance(entry, dict)
        ]
        config["reservation_affinity"] = {**affinity, "values": [name for name in named if name]}
    pool: dict[str, object] = {
        "node_locations": data.get("zones"),
        "node_config": config,
        "max_pods_per_node": data.get("max_pods_per_node"),
        "placement_policy": {
            _PLACEMENT.get(key, key): value for key, value in settings.block("placement_policy").data.items()
        },
        "queued_provisioning": {"enabled": data.get("enable_queued_provisioning", False)},
        "version": data.get("gke_version"),
    }
    if data.get("static_node_count") is not None:
        pool["node_count"] = data["static_node_count"]
    elif data.get("autoscaling_max_node_count") is not None:
        pool["autoscaling"] = {"max_node_count": data["autoscaling_max_node_count"]}
    else:
        most = data.get("autoscaling_total_max_nodes") or data.get("total_max_nodes") or 1000
        pool["autoscaling"] = {"total_max_node_count": most}
    doubts = (*unread_keys(module, BLUEPRINT_MODULE), *unread_keys(settings, _KEYS))
    name = settings.text("name") or module.text("id", required=True)
    count = settings.number("num_node_pools", "num_slices") or 1
    for index in range(count):
        fields = Fields({**pool, "name": f"{name}-{index}" if count > 1 else name}, settings.path, settings.faults)
        one = read_pool(fields, catalog, more_doubts=doubts)
        if one is not None:
            yield one
