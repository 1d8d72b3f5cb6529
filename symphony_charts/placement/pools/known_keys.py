"""The keys of each format are listed: those a reader uses, and those that cannot change what a node offers.

Any other key is a doubt about the pool that it stands in. Inside a node's configuration it could close or shrink the
node, so nothing is known of that pool (UNKNOWN); elsewhere it is at most PACKABLE.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from symphony_charts.formats.field_reader import Fields
from symphony_charts.placement.pools.pool import Doubt, Weight

__all__ = [
    "COMPUTE_CLASS",
    "GCLOUD_POOL",
    "MACHINE_CONFIG",
    "MACHINE_TYPE",
    "NODE",
    "TAINT",
    "TERRAFORM_NODE_CONFIG",
    "TERRAFORM_POOL",
    "Keys",
    "keys",
    "unread_keys",
]

_NOTHING: tuple[object, ...] = (None, "", [], {})


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of one object: `used` by the reader, `harmless` to pods, and the objects in it with keys of their own.

    `weight` is how heavy any other key is.
    """

    used: frozenset[str] = frozenset()
    harmless: frozenset[str] = frozenset()
    blocks: Mapping[str, Keys] = field(default_factory=dict)
    weight: Weight = "UNKNOWN"


def keys(used: str = "", harmless: str = "", weight: Weight = "UNKNOWN", **blocks: Keys) -> Keys:
    """Keys from texts of words."""
    return Keys(frozenset(used.split()), frozenset(harmless.split()), blocks, weight)


def unread_keys(item: Fields, known: Keys) -> Iterator[Doubt]:
    """Yield a doubt for each key in `item`, and in the objects in it, that is neither used nor harmless."""
    for key, value in item.data.items():
        if value in _NOTHING or key.startswith("__") or key in known.used or key in known.harmless:
            continue
        if key not in known.blocks:
            what = "could close or shrink its nodes" if known.weight == "UNKNOWN" else "may change what it offers"
            text = f'"{key}" is no key that is understood here, and {what} ({item.faults.position(item.at(key))})'
            yield Doubt(text=text, weight=known.weight)
        elif isinstance(value, (dict, list)):
            is_one = isinstance(value, dict) or len(value) == 1
            for block in [item.block(key)] if is_one else item.blocks(key):
                yield from unread_keys(block, known.blocks[key])


_TERRAFORM_KUBELET = keys(
    harmless="cpu_manager_policy cpu_cfs_quota cpu_cfs_quota_period insecure_kubelet_readonly_port_enabled"
    " pod_pids_limit container_log_max_size container_log_max_files image_gc_low_threshold_percent"
    " image_gc_high_threshold_percent image_minimum_gc_age image_maximum_gc_age allowed_unsafe_sysctls"
    " max_parallel_image_pulls single_process_oom_kill shutdown_grace_period_seconds"
    " shutdown_grace_period_critical_pods_seconds",
)
_SSDS = keys("local_ssd_count data_cache_count")
TAINT = keys("key value effect", "timeAdded")
TERRAFORM_NODE_CONFIG = keys(
    "machine_type image_type disk_size_gb labels spot preemptible flex_start local_ssd_count",
    harmless="disk_type oauth_scopes service_account metadata tags resource_labels resource_manager_tags"
    " min_cpu_platform gvnic fast_socket workload_metadata_config shielded_instance_config boot_disk_kms_key"
    " storage_pools enable_confidential_storage local_ssd_encryption_mode max_run_duration containerd_config"
    " host_maintenance_policy windows_node_config workload_metadata ip_type node_pool_auto_config",
    taint=TAINT,
    effective_taints=TAINT,
    ephemeral_storage_local_ssd_config=_SSDS,
    ephemeral_storage_config=_SSDS,
    local_nvme_ssd_block_config=keys("local_ssd_count"),
    boot_disk=keys("size_gb", "disk_type provisioned_iops provisioned_throughput"),
    guest_accelerator=keys(
        "type count gpu_partition_size",
        gpu_sharing_config=keys("gpu_sharing_strategy max_shared_clients_per_gpu"),
        gpu_driver_installation_config=keys("gpu_driver_version"),
    ),
    gcfs_config=keys("enabled"),
    confidential_nodes=keys("enabled", "confidential_instance_type"),
    advanced_machine_features=keys("threads_per_core", "enable_nested_virtualization performance_monitoring_unit"),
    reservation_affinity=keys("consume_reservation_type values", "key"),
    secondary_boot_disks=keys("mode", "disk_image"),
    sandbox_config=keys("sandbox_type type"),
    linux_node_config=keys(
        harmless="sysctls cgroup_mode transparent_hugepage_enabled transparent_hugepage_defrag"
        " node_kernel_module_loading",
        hugepages_config=keys("hugepage_size_2m hugepage_size_1g"),
    ),
    kubelet_config=_TERRAFORM_KUBELET,
    # Read as doubts of their own.
    sole_tenant_config=keys("node_affinity", "min_node_cpus max_node_cpus"),
    node_group=keys(),
    logging_variant=keys(),
)
TERRAFORM_POOL = keys(
    "name name_prefix location zone node_locations cluster version node_count initial_node_count max_pods_per_node",
    harmless="management upgrade_settings timeouts project id operation instance_group_urls"
    " managed_instance_group_urls provider depends_on lifecycle network_config node_drain_config region"
    " deletion_policy self_link etag default_max_pods_per_node",
    weight="PACKABLE",
    node_config=TERRAFORM_NODE_CONFIG,
    autoscaling=keys(
        "min_node_count max_node_count total_min_node_count total_max_node_count", "location_policy", "PACKABLE"
    ),
    placement_policy=keys("type policy_name tpu_topology"),
    queued_provisioning=keys("enabled"),
)

_GCLOUD_KUBELET = keys(
    harmless="cpuManagerPolicy cpuCfsQuota cpuCfsQuotaPeriod insecureKubeletReadonlyPortEnabled podPidsLimit"
    " containerLogMaxSize containerLogMaxFiles imageGcLowThresholdPercent imageGcHighThresholdPercent"
    " imageMinimumGcAge imageMaximumGcAge allowedUnsafeSysctls maxParallelImagePulls singleProcessOomKill"
    " shutdownGracePeriodSeconds shutdownGracePeriodCriticalPodsSeconds",
    reservedResourcesConfig=keys(
        "effectiveCpuReservedMillicore cpuReservedMillicore effectiveMemoryReservedMib memoryReservedMib"
    ),
)
GCLOUD_POOL = keys(
    "name version locations initialNodeCount status",
    harmless="selfLink instanceGroupUrls management upgradeSettings podIpv4CidrSize networkConfig statusMessage"
    " conditions updateInfo etag bestEffortProvisioning nodeDrainConfig autopilotConfig maintenancePolicy",
    weight="PACKABLE",
    config=keys(
        "machineType diskSizeGb imageType labels spot preemptible flexStart localSsdCount",
        harmless="diskType oauthScopes serviceAccount metadata tags resourceLabels resourceManagerTags minCpuPlatform"
        " gvnic fastSocket workloadMetadataConfig shieldedInstanceConfig bootDiskKmsKey storagePools"
        " enableConfidentialStorage localSsdEncryptionMode maxRunDuration containerdConfig windowsNodeConfig"
        " effectiveCgroupMode hostMaintenancePolicy gpuDirectConfig nodeImageConfig consolidationDelay",
        taints=TAINT,
        ephemeralStorageLocalSsdConfig=keys("localSsdCount dataCacheCount"),
        ephemeralStorageConfig=keys("localSsdCount dataCacheCount"),
        localNvmeSsdBlockConfig=keys("localSsdCount"),
        bootDisk=keys("sizeGb", "diskType provisionedIops provisionedThroughput"),
        accelerators=keys(
            "acceleratorType acceleratorCount gpuPartitionSize",
            gpuSharingConfig=keys("gpuSharingStrategy maxSharedClientsPerGpu"),
            gpuDriverInstallationConfig=keys("gpuDriverVersion"),
        ),
        gcfsConfig=keys("enabled"),
        confidentialNodes=keys("enabled", "confidentialInstanceType"),
        advancedMachineFeatures=keys("threadsPerCore", "enableNestedVirtualization performanceMonitoringUnit"),
        reservationAffinity=keys("consumeReservationType values", "key"),
        secondaryBootDisks=keys("mode", "diskImage"),
        sandboxConfig=keys("type sandboxType"),
        linuxNodeConfig=keys(
            harmless="sysctls cgroupMode transparentHugepageEnabled transparentHugepageDefrag nodeKernelModuleLoading",
            hugepages=keys("hugepageSize2m hugepageSize1g"),
        ),
        kubeletConfig=_GCLOUD_KUBELET,
        soleTenantConfig=keys("nodeAffinities", "minNodeCpus maxNodeCpus"),
        nodeGroup=keys(),
        loggingConfig=keys(variantConfig=keys("variant")),
    ),
    autoscaling=keys(
        "enabled minNodeCount maxNodeCount totalMinNodeCount totalMaxNodeCount",
        "locationPolicy autoprovisioned",
        "PACKABLE",
    ),
    maxPodsConstraint=keys("maxPodsPerNode"),
    placementPolicy=keys("type policyName tpuTopology"),
    queuedProvisioning=keys("enabled"),
)

_CLASS_NODE_SYSTEM = keys(
    linuxNodeConfig=keys(
        harmless="sysctls cgroupMode transparentHugepageEnabled transparentHugepageDefrag",
        hugepageConfig=keys("hugepage_size2m hugepage_size1g hugepageSize2m hugepageSize1g"),
    ),
    kubeletConfig=_GCLOUD_KUBELET,
)
_LOCATION = keys("zones", "locationPolicy")
_COMPUTE_CLASS_SPEC = keys(
    weight="PACKABLE",
    harmless="activeMigration autoscalingPolicy whenUnsatisfiable description nodePoolGroup",
    nodePoolAutoCreation=keys("enabled", weight="PACKABLE"),
    nodePoolConfig=keys(
        "imageType nodeLabels nodeVersion",
        harmless="serviceAccount resourceManagerTags workloadType ipType loggingConfig gvnic workloadMetadataConfig",
        taints=TAINT,
        imageStreaming=keys("enabled"),
        confidentialNodes=keys("enabled", "confidentialInstanceType"),
    ),
    priorityDefaults=keys(weight="PACKABLE", location=_LOCATION, nodeSystemConfig=_CLASS_NODE_SYSTEM),
    priorities=keys(
        "machineFamily machineType minCores minMemoryGb spot maxPodsPerNode nodepools nodeLabels",
        harmless="maxRunDurationSeconds capacityCheckWaitTimeSeconds priorityScore minCpuPlatform",
        taints=TAINT,
        storage=keys(
            "bootDiskSize localSSDCount",
            "bootDiskType bootDiskKMSKey",
            secondaryBootDisks=keys("mode", "diskImageName project"),
        ),
        gpu=keys("type count driverVersion"),
        tpu=keys("type count topology"),
        reservations=keys("affinity", specific=keys("name", "project zones reservationBlock")),
        location=_LOCATION,
        placement=keys("policyName"),
        flexStart=keys("enabled", "nodeRecycling"),
        nodeSystemConfig=_CLASS_NODE_SYSTEM,
    ),
)

COMPUTE_CLASS = keys("apiVersion kind metadata", "status", "PACKABLE", spec=_COMPUTE_CLASS_SPEC)

# Of a live node all that counts is in its status; of what its spec says, these have been looked at.
NODE = keys(
    "apiVersion kind metadata status",
    spec=keys("unschedulable", "podCIDR podCIDRs providerID externalID configSource", taints=TAINT),
)

# Machine lists make no pools; what else they say of a machine is a note.
MACHINE_TYPE = keys(
    "name guestCpus memoryMb architecture isSharedCpu",
    "kind id selfLink zone description creationTimestamp imageSpaceGb maximumPersistentDisks deprecated scratchDisks"
    " maximumPersistentDisksSizeGb bundledLocalSsds",
    accelerators=keys("guestAcceleratorType guestAcceleratorCount"),
)
_MACHINE_FAMILY = keys(
    "name",
    machineTypes=keys(
        "name",
        resources=keys(
            "cpus memory",
            accelerator=keys("name fixedCount", "automaticCount validCounts", tpuConfig=keys("topology")),
            LocalSSDConfig=keys("fixedCount automaticCount", "validCounts"),
            localSSDConfig=keys("fixedCount automaticCount", "validCounts"),
        ),
    ),
)
MACHINE_CONFIG = keys(
    "apiVersion kind metadata",
    "status",
    spec=keys("name", machineFamily=_MACHINE_FAMILY, machineTypes=_MACHINE_FAMILY.blocks["machineTypes"]),
)
