"""Read the node configuration of a pool in Terraform's or GKE's spelling, and report unknown keys.

An unknown key of a node configuration could exclude pods or shrink the node, so it makes the pool UNKNOWN. An unknown
key elsewhere in the pool makes it PACKABLE at most. The other keys of a cluster concern its control plane and network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from symphony_charts.formats.field_reader import Fields
from symphony_charts.formats.quantity import GIB, MIB
from symphony_charts.placement.allocatable import Amounts
from symphony_charts.placement.pools.pool import Provisioning, Taint, Uncertainty, Weight

_NOTHING: tuple[object, ...] = (None, "", [], {})


def _folded(key: str) -> str:
    """Return `key` without underscores and case, so that one table serves Terraform, gcloud and Kubernetes."""
    return key.replace("_", "").lower()


def _words(text: str) -> frozenset[str]:
    return frozenset(map(_folded, text.split()))


# Objects whose own keys are checked. Keys of other objects are free, or change nothing for pods.
_BLOCKS = _words(
    "node_config config autoscaling max_pods_constraint placement_policy queued_provisioning taint taints"
    " effective_taints ephemeral_storage_local_ssd_config ephemeral_storage_config local_nvme_ssd_block_config"
    " boot_disk guest_accelerator accelerators gpu_sharing_config gpu_driver_installation_config gcfs_config"
    " confidential_nodes advanced_machine_features reservation_affinity secondary_boot_disks sandbox_config"
    " linux_node_config hugepages_config hugepages kubelet_config reserved_resources_config sole_tenant_config"
    " node_group logging_config variant_config"
)
_KNOWN = _words(
    # of a pool
    "name name_prefix location locations zone region node_locations cluster version node_count initial_node_count"
    " max_pods_per_node status management upgrade_settings timeouts project id operation instance_group_urls"
    " managed_instance_group_urls provider depends_on lifecycle network_config node_drain_config deletion_policy"
    " self_link etag default_max_pods_per_node pod_ipv4_cidr_size status_message conditions update_info"
    " best_effort_provisioning autopilot_config maintenance_policy enabled min_node_count max_node_count"
    " total_min_node_count total_max_node_count location_policy autoprovisioned policy_name"
    # of a node
    " machine_type image_type disk_size_gb labels spot preemptible flex_start local_ssd_count logging_variant"
    " disk_type oauth_scopes service_account metadata tags resource_labels resource_manager_tags min_cpu_platform gvnic"
    " fast_socket workload_metadata_config workload_metadata shielded_instance_config boot_disk_kms_key storage_pools"
    " enable_confidential_storage local_ssd_encryption_mode max_run_duration containerd_config host_maintenance_policy"
    " windows_node_config ip_type node_pool_auto_config effective_cgroup_mode gpu_direct_config node_image_config"
    " consolidation_delay insecure_kubelet_readonly_port_enabled node_kubelet_config"
    # of taints, disks, devices and reservations
    " key value values effect time_added type count size_gb provisioned_iops provisioned_throughput data_cache_count"
    " mode disk_image accelerator_type accelerator_count gpu_partition_size gpu_sharing_strategy tpu_topology"
    " max_shared_clients_per_gpu gpu_driver_version confidential_instance_type threads_per_core variant sandbox_type"
    " enable_nested_virtualization performance_monitoring_unit consume_reservation_type"
    # of the kernel and the kubelet
    " sysctls cgroup_mode transparent_hugepage_enabled transparent_hugepage_defrag node_kernel_module_loading"
    " hugepage_size_2m hugepage_size_1g cpu_manager_policy cpu_cfs_quota cpu_cfs_quota_period pod_pids_limit"
    " container_log_max_size container_log_max_files image_gc_low_threshold_percent image_gc_high_threshold_percent"
    " image_minimum_gc_age image_maximum_gc_age allowed_unsafe_sysctls max_parallel_image_pulls"
    " single_process_oom_kill shutdown_grace_period_seconds shutdown_grace_period_critical_pods_seconds"
    " effective_cpu_reserved_millicore cpu_reserved_millicore effective_memory_reserved_mib memory_reserved_mib"
    # of sole tenancy, which has an uncertainty of its own
    " node_affinity node_affinities min_node_cpus max_node_cpus"
)


def unknown_keys(item: Fields, weight: Weight) -> Iterator[Uncertainty]:
    """Yield an uncertainty of this `weight` for each unknown key in `item`, and in the objects in it.

    An unknown key in a block of a pool weighs UNKNOWN, but that of its autoscaling weighs PACKABLE.
    """
    for key, value in item.data.items():
        name = _folded(key)
        if value in _NOTHING or key.startswith("__") or name in _KNOWN:
            continue
        if name not in _BLOCKS:
            yield _unknown_key(item, key, weight)
        elif isinstance(value, (dict, list)):
            is_one = isinstance(value, dict) or len(value) == 1
            for block in [item.block(key)] if is_one else item.blocks(key):
                yield from unknown_keys(block, "PACKABLE" if name == "autoscaling" else "UNKNOWN")


def _unknown_key(item: Fields, key: str, weight: Weight) -> Uncertainty:
    what = "may close or shrink its nodes" if weight == "UNKNOWN" else "may change what it offers"
    text = f'symph does not know the key "{key}", which {what} ({item.faults.position(item.at(key))})'
    return Uncertainty(text=text, weight=weight)


_GCS_FUSE = "gcs_fuse_csi_driver_config"
# Add-ons whose pods on each node have no published requests.
_DRIVERS = {
    "gcp_filestore_csi_driver_config": "Filestore",
    "lustre_csi_driver_config": "Lustre",
    "parallelstore_csi_driver_config": "Parallelstore",
}
_ADDONS = _words(
    "http_load_balancing horizontal_pod_autoscaling kubernetes_dashboard network_policy_config dns_cache_config"
    " gce_persistent_disk_csi_driver_config config_connector_config cloudrun_config gke_backup_agent_config"
    " stateful_ha_config pod_snapshot_config ray_operator_config"
) | _words(" ".join((_GCS_FUSE, *_DRIVERS)))


def _addon_uncertainties(addons: Fields, key: Callable[[str], str]) -> Iterator[Uncertainty]:
    """Yield an uncertainty for each enabled add-on that runs on every node and requests an unknown amount."""
    for name, driver in _DRIVERS.items():
        if addons.block(key(name)).flag("enabled"):
            text = f"the requests of the {driver} driver on each node are not published; set them with --system"
            yield replace(uncertainty(addons, text), of_system=True)
    for name, value in addons.data.items():
        if _folded(name) not in _ADDONS and value not in _NOTHING:
            yield _unknown_key(addons, name, "PACKABLE")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """Settings of a cluster that hold for all its pools; `reservations` maps names to numbers of machines."""

    zones: tuple[str, ...] = ()
    location: str = ""
    calico: bool = False
    max_pods: int | None = None
    confidential: bool = False
    streaming: bool = False
    gcs_fuse: bool = False
    uncertainties: tuple[Uncertainty, ...] = ()
    reservations: Mapping[str, int] = field(default_factory=dict)


def cluster_settings(cluster: Fields, zones: tuple[str, ...], key: Callable[[str], str]) -> ClusterSettings:
    """Return the settings of a cluster; `key` translates Terraform's names into the names used in the file."""
    addons = cluster.block(key("addons_config"))
    defaults = cluster.block(key("node_pool_defaults")).block(key("node_config_defaults"))
    dataplane = cluster.text("datapath_provider") or cluster.block("networkConfig").text("datapathProvider")
    return ClusterSettings(
        zones=zones,
        calico=cluster.block(key("network_policy")).flag("enabled") and dataplane != "ADVANCED_DATAPATH",
        confidential=cluster.block(key("confidential_nodes")).flag("enabled"),
        gcs_fuse=addons.block(key(_GCS_FUSE)).flag("enabled"),
        uncertainties=(
            *unknown_keys(defaults, "UNKNOWN"),
            *_addon_uncertainties(addons, key),
            *_logging_uncertainty(defaults),
        ),
    )


def autoscaled(cluster: Fields) -> Iterator[str]:
    """Yield why the cluster may have more pools than the file shows, in Terraform's or gcloud's spelling."""
    if cluster.flag("enable_autopilot") or cluster.block("autopilot").flag("enabled"):
        yield "an Autopilot cluster creates its own nodes"
    elif cluster.block("cluster_autoscaling").flag("enabled") or cluster.block("autoscaling").flag(
        "enableNodeAutoprovisioning"
    ):
        yield "node auto-provisioning, which may add pools"


def _node_counts(pool: Fields, zones: int, key: Callable[[str], str]) -> tuple[int, int]:
    """Return the least and the most nodes of a pool; sizes are per zone unless they are totals.

    A block of Terraform turns autoscaling on; GKE's API has a field for that.
    """
    scaling = pool.block("autoscaling")
    if not (scaling.flag("enabled") if key is in_camel_case else scaling.data):
        count = (pool.number(key("node_count"), key("initial_node_count")) or 0) * zones
        return count, count
    if total := scaling.number(key("total_max_node_count")):
        return scaling.number(key("total_min_node_count")) or 0, total
    low, high = scaling.number(key("min_node_count")), scaling.number(key("max_node_count"))
    return (low or 0) * zones, (high or 0) * zones


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePoolConfig:
    """One node pool as configured; node counts are for the whole pool.

    `machine_field` is the place of its machine type in the file, at which faults of the machine are reported.
    """

    name: str
    source: str
    machine_type: str
    machine_field: Fields
    image: str = ""
    disk_type: str = ""
    disk_gib: int = 100
    ephemeral_ssds: int | None = None
    labels: dict[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    gpu_type: str = ""
    gpu_count: int = 0
    gpu_partition: str = ""
    gpu_sharing: str = ""
    gpu_clients: int = 1
    provisioning: Provisioning = "standard"
    zones: tuple[str, ...] = ()
    min_nodes: int = 0
    max_nodes: int = 0
    max_pods: int = 110
    placement: str = ""
    tpu_topology: str = ""
    reservation: str = ""
    queued: bool = False
    streaming: bool = False
    one_thread: bool = False
    confidential: bool = False
    raw_ssds: int = 0
    cache_ssds: int = 0
    extra_ssds: int = 0
    hugepages: Amounts = field(default_factory=dict)
    sandbox: str = ""
    gpu_driver: str = ""
    uncertainties: tuple[Uncertainty, ...] = ()
    reserved_cpu: int | None = None
    reserved_memory_mib: int | None = None
    cluster: ClusterSettings = ClusterSettings()


_PAGES = {"hugepages-2Mi": ("hugepage_size_2m", 2 * MIB), "hugepages-1Gi": ("hugepage_size_1g", GIB)}
# Terraform's name -> GKE's API name, where that is not the camel-case form of the same word.
_GKE_NAMES = {
    "node_config": "config",
    "guest_accelerator": "accelerators",
    "type": "acceleratorType",
    "count": "acceleratorCount",
    "hugepages_config": "hugepages",
}


def in_camel_case(name: str) -> str:
    """Return GKE's name of Terraform's field `name`."""
    first, *rest = name.split("_")
    return _GKE_NAMES.get(name) or first + "".join(map(str.capitalize, rest))


def read_node_config(
    pool: Fields, name: str, zones: tuple[str, ...], cluster: ClusterSettings, key: Callable[[str], str]
) -> NodePoolConfig:
    """Return the settings of a node pool and its node configuration.

    `key` translates Terraform's names into the names used in the file.
    """
    low, high = _node_counts(pool, max(1, len(zones)), key)
    config = pool.block(key("node_config"))
    labels = config.mapping("labels")
    for label, value in labels.items():
        config.faults.is_unresolved(f"{label}={value}", config.at("labels"))
    pods = pool.number("max_pods_per_node", minimum=1) or pool.block("maxPodsConstraint").number(
        "maxPodsPerNode", minimum=1
    )
    ssds = config.block(key("ephemeral_storage_local_ssd_config"), key("ephemeral_storage_config"))
    disk = config.block(key("boot_disk"))
    accelerator = key("guest_accelerator")
    gpu = next(config.blocks(accelerator), Fields({}, config.at(accelerator), pool.faults))
    sharing, driver = gpu.block(key("gpu_sharing_config")), gpu.block(key("gpu_driver_installation_config"))
    placement, affinity = pool.block(key("placement_policy")), config.block(key("reservation_affinity"))
    images = config.block(key("gcfs_config"))
    preloads = any(disk.text("mode") == "CONTAINER_IMAGE_CACHE" for disk in config.blocks(key("secondary_boot_disks")))
    pages = config.block(key("linux_node_config")).block(key("hugepages_config"))
    reserved = config.block(key("kubelet_config")).block(key("reserved_resources_config"))
    alone = "sole tenancy limits it to the reserved hosts"
    is_sole = config.has(key("sole_tenant_config")) or config.has(key("node_group"))
    sole = [uncertainty(config, alone, "UNKNOWN")] if is_sole else []
    is_reserved = affinity.text(key("consume_reservation_type")) == "SPECIFIC_RESERVATION"
    return NodePoolConfig(
        name=name,
        source=pool.faults.source(pool.path),
        machine_type=config.text(key("machine_type")),
        machine_field=Fields({}, config.at(key("machine_type")), pool.faults),
        labels=labels,
        zones=zones,
        min_nodes=low,
        max_nodes=high,
        max_pods=pods or cluster.max_pods or 110,
        cluster=cluster,
        disk_type=config.text(key("disk_type")) or disk.text(key("disk_type")),
        image=config.text(key("image_type")),
        disk_gib=config.number(key("disk_size_gb"), minimum=10) or disk.number(key("size_gb"), minimum=10) or 100,
        ephemeral_ssds=ssds.number(key("local_ssd_count")),
        cache_ssds=ssds.number(key("data_cache_count")) or 0,
        raw_ssds=config.block(key("local_nvme_ssd_block_config")).number(key("local_ssd_count")) or 0,
        extra_ssds=config.number(key("local_ssd_count")) or 0,
        taints=read_taints(config, "taint", "taints", "effective_taints"),
        gpu_type=gpu.text(key("type")),
        gpu_count=gpu.number(key("count")) or 0,
        gpu_partition=gpu.text(key("gpu_partition_size")),
        gpu_sharing=sharing.text(key("gpu_sharing_strategy")),
        gpu_clients=sharing.number(key("max_shared_clients_per_gpu")) or 1,
        gpu_driver=driver.text(key("gpu_driver_version")),
        provisioning=_provisioning(config, key("flex_start")),
        placement=placement.text(key("policy_name")) or ("compact" if placement.text("type") == "COMPACT" else ""),
        tpu_topology=placement.text(key("tpu_topology")),
        reservation=next(iter(affinity.texts("values")), "") if is_reserved else "",
        queued=pool.block(key("queued_provisioning")).flag("enabled"),
        streaming=preloads or (images.flag("enabled") if images.data else cluster.streaming),
        one_thread=config.block(key("advanced_machine_features")).number(key("threads_per_core")) == 1,
        confidential=config.block(key("confidential_nodes")).flag("enabled") or cluster.confidential,
        hugepages={name: number * size for name, (page, size) in _PAGES.items() if (number := pages.number(key(page)))},
        sandbox=config.block(key("sandbox_config")).text(key("sandbox_type"), "type").lower(),
        reserved_cpu=reserved.number(key("effective_cpu_reserved_millicore"), key("cpu_reserved_millicore")),
        reserved_memory_mib=reserved.number(key("effective_memory_reserved_mib"), key("memory_reserved_mib")),
        uncertainties=(*sole, *_logging_uncertainty(config), *cluster.uncertainties),
    )


def _logging_uncertainty(config: Fields) -> Iterator[Uncertainty]:
    """Yield an uncertainty if nodes with this configuration run the larger logging agent."""
    variant = config.text("logging_variant") or config.block("loggingConfig").block("variantConfig").text("variant")
    if variant == "MAX_THROUGHPUT":
        yield uncertainty(config, "the logging agent for high throughput requests more than symph counts", "UNKNOWN")


def _provisioning(config: Fields, flex_start: str) -> Provisioning:
    kinds: dict[str, Provisioning] = {"spot": "spot", flex_start: "flex-start", "preemptible": "preemptible"}
    return next((kind for key, kind in kinds.items() if config.flag(key)), "standard")


def uncertainty(item: Fields, text: str, weight: Weight = "PACKABLE", *, may_grow: bool = False) -> Uncertainty:
    """Return an uncertainty about the pool, with its place in the file."""
    where = item.faults.position(item.path)
    return Uncertainty(text=f"{text} ({where})", weight=weight, may_grow=may_grow)


_EFFECTS = {"noschedule": "NoSchedule", "prefernoschedule": "PreferNoSchedule", "noexecute": "NoExecute"}


def read_taints(pool: Fields, *keys: str) -> tuple[Taint, ...]:
    """Return the taints in the lists `keys`, in Terraform's, gcloud's or Kubernetes' spelling."""
    taints: dict[Taint, None] = {}
    for item in (item for key in keys for item in pool.blocks(key)):
        effect = item.text("effect", required=True)
        kubernetes_effect = _EFFECTS.get(_folded(effect))
        if effect and kubernetes_effect is None:
            item.fault(f'unknown taint effect "{effect}"', "effect", "NO_SCHEDULE, PREFER_NO_SCHEDULE or NO_EXECUTE")
        key = item.text("key", required=True)
        if kubernetes_effect and key:
            taints[Taint(key=key, value=item.text("value"), effect=kubernetes_effect)] = None  # type: ignore[arg-type]  # values of _EFFECTS
    return tuple(taints)
