"""Read GKE's descriptions: node pools and clusters of gcloud, compute classes, machine types.

Schema: container/v1 NodePool. int64 fields are texts there, int32 numbers; both are accepted for either. Sizes are per
zone unless they are `total*`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from symphony_charts.formats.field_reader import Fields
from symphony_charts.placement.catalog import Catalog, Machine
from symphony_charts.placement.pools.gke_node_pool import make_pool
from symphony_charts.placement.pools.node_config import (
    COMPUTE_CLASS,
    NODE_DEFAULTS,
    POOL,
    ClusterSettings,
    NodePoolConfig,
    addon_uncertainties,
    huge_pages,
    in_camel_case,
    read_node_config,
    read_taints,
    uncertainty,
    unknown_keys,
)
from symphony_charts.placement.pools.pool import GKE_POOL_LABEL, Pool, Pools, Provisioning, Taint

# A pod selects the class by the label ``cloud.google.com/compute-class``; nodes have it as a label and a taint. Only
# quota limits the number of nodes, so `max_nodes` is a fixed large number unless a pool is named.

_PRIORITIES = "spec.priorities"
_CLASS_LABEL = "cloud.google.com/compute-class"
# The maximum of one GKE scale-up; quota may be smaller, which no file shows.
UNBOUNDED = 500


def read_compute_class(item: Fields, catalog: Catalog) -> Pools:
    """Return one pool per priority, named ``<class>-<priority>``; a priority may require existing pools instead."""
    name = item.block("metadata").text("name", required=True)
    spec = item.block("spec")
    config, defaults = spec.block("nodePoolConfig"), spec.block("priorityDefaults")
    unread = list(unknown_keys(item, COMPUTE_CLASS))
    pools, required_pools = [], []
    for index, priority in enumerate(spec.blocks("priorities"), start=1):
        if priority.has("nodepools"):
            place = item.faults.position(priority.at("nodepools"))
            required_pools += [(pool, place) for pool in priority.texts("nodepools")]
            continue
        machine = _machine(priority, catalog)
        if machine is None:
            continue
        uncertainties = [
            uncertainty
            for uncertainty in unread
            if _PRIORITIES not in uncertainty.text or f"{priority.path}." in uncertainty.text
        ]
        settings = _settings(name, index, priority, config, defaults, machine)
        pool = make_pool(replace(settings, uncertainties=(*settings.uncertainties, *uncertainties)), catalog, priority)
        if pool is not None:
            labels = {key: value for key, value in pool.labels.items() if key != GKE_POOL_LABEL}
            pools.append(replace(pool, labels=labels, selector=(_CLASS_LABEL, name)))
    return Pools(pools=tuple(pools), required_pools=tuple(required_pools))


def _settings(
    name: str, index: int, priority: Fields, config: Fields, defaults: Fields, machine: Machine
) -> NodePoolConfig:
    storage, system = priority.block("storage"), priority.block("nodeSystemConfig")
    if not system.data:
        system = defaults.block("nodeSystemConfig")
    pages = system.block("linuxNodeConfig").block("hugepageConfig")
    reserved = system.block("kubeletConfig").block("reservedResourcesConfig")
    preloads = any(disk.text("mode") == "CONTAINER_IMAGE_CACHE" for disk in storage.blocks("secondaryBootDisks"))
    provisioning: Provisioning = "flex-start" if priority.block("flexStart").flag("enabled") else "standard"
    provisioning = "spot" if priority.flag("spot") else provisioning
    specific = [entry.text("name") for entry in priority.block("reservations").blocks("specific")]
    return NodePoolConfig(
        name=f"{name}-{index}",
        source=priority.faults.source(priority.path),
        machine_type=machine.name,
        version=config.text("nodeVersion"),
        image=config.text("imageType"),
        disk_gib=storage.number("bootDiskSize", minimum=10) or 100,
        ephemeral_ssds=storage.number("localSSDCount"),
        streaming=config.block("imageStreaming").flag("enabled") or preloads,
        confidential=config.block("confidentialNodes").flag("enabled"),
        hugepages=huge_pages(pages, *_PAGES[pages.has("hugepage_size2m") or pages.has("hugepage_size1g")]),
        reserved_cpu=reserved.number("effectiveCpuReservedMillicore", "cpuReservedMillicore"),
        reserved_memory_mib=reserved.number("effectiveMemoryReservedMib", "memoryReservedMib"),
        labels={_CLASS_LABEL: name, **config.mapping("nodeLabels"), **priority.mapping("nodeLabels")},
        taints=(
            *read_taints(config, "taints"),
            *read_taints(priority, "taints"),
            Taint(key=_CLASS_LABEL, value=name),
        ),
        gpu_type=priority.block("gpu").text("type"),
        gpu_count=priority.block("gpu").number("count") or 0,
        gpu_driver=priority.block("gpu").text("driverVersion"),
        provisioning=provisioning,
        zones=tuple(priority.block("location").texts("zones") or defaults.block("location").texts("zones")),
        max_nodes=UNBOUNDED,
        max_pods=priority.number("maxPodsPerNode", minimum=1) or 110,
        placement=priority.block("placement").text("policyName"),
        tpu_topology=priority.block("tpu").text("topology"),
        reservation=specific[0] if specific and priority.block("reservations").text("affinity") == "Specific" else "",
        accuracy="model" if priority.has("machineType") else "guess",
        notes=(f"priority {index} of compute class {name}; its number of nodes is bounded by quota alone",),
    )


_PAGES = {True: ("hugepage_size2m", "hugepage_size1g"), False: ("hugepageSize2m", "hugepageSize1g")}


def _machine(priority: Fields, catalog: Catalog) -> Machine | None:
    named = priority.text("machineType")
    if named:
        machine = catalog.get(named)
        if machine is None:
            priority.fault(f'unknown machine type "{named}"', "machineType")
        return machine
    if priority.has("machineType"):
        return None  # and its fault is noted
    family = priority.text("machineFamily")
    gpu, tpu = priority.block("gpu"), priority.block("tpu")
    cores, gib = priority.number("minCores") or 0, priority.number("minMemoryGb") or 0
    fits = [
        machine
        for machine in catalog.machines.values()
        if machine.vcpu >= cores
        and machine.memory_mib >= gib * 1024
        and (not family or machine.family == family)
        and (not gpu.data or (machine.gpu == gpu.text("type") and machine.gpus == (gpu.number("count") or 1)))
        and (not tpu.data or (machine.tpu == tpu.text("type") and machine.chips == (tpu.number("count") or 1)))
        and bool(family or gpu.data or tpu.data)
    ]
    if not fits:
        priority.fault("no machine type fits this priority", "", "give machineType, or a machineFamily that is known")
        return None
    return min(fits, key=lambda machine: (machine.vcpu, machine.memory_mib, machine.name))


def read_cluster(cluster: Fields, catalog: Catalog) -> Pools:
    """Return the pools of one `gcloud container clusters describe`."""
    dataplane_v2 = cluster.block("networkConfig").text("datapathProvider") == "ADVANCED_DATAPATH"
    addons = cluster.block("addonsConfig")
    defaults = cluster.block("nodePoolDefaults").block("nodeConfigDefaults")
    settings = ClusterSettings(
        zones=tuple(cluster.texts("locations")),
        calico=cluster.block("networkPolicy").flag("enabled") and not dataplane_v2,
        confidential=cluster.block("confidentialNodes").flag("enabled"),
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


def read_node_pool(pool: Fields, catalog: Catalog, cluster: ClusterSettings | None = None) -> Pool | None:
    """Return the pool of a NodePool of GKE's API; None if it lacks a name or a known machine type."""
    cluster = cluster or ClusterSettings()
    config = pool.block("config")
    name = pool.text("name", required=True)
    zones = tuple(pool.texts("locations")) or cluster.zones
    low, high = _counts(pool, max(1, len(zones)))
    settings = read_node_config(pool, name, cluster, in_camel_case, ("taints",))
    uncertainties = list(unknown_keys(pool, POOL))
    status = pool.text("status")
    if status not in ("", "RUNNING", "PROVISIONING", "RECONCILING"):
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


def _counts(pool: Fields, zones: int) -> tuple[int, int]:
    scaling = pool.block("autoscaling")
    if not scaling.flag("enabled"):
        count = (pool.number("initialNodeCount") or 0) * zones
        return count, count
    total_high = scaling.number("totalMaxNodeCount")
    if total_high:
        return scaling.number("totalMinNodeCount") or 0, total_high
    return (scaling.number("minNodeCount") or 0) * zones, (scaling.number("maxNodeCount") or 0) * zones


# GKE itself installs MachineConfig (machineconfigs.cloud.google.com/v1) into clusters; it is the freshest source.


def read_machine_configs(items: Iterable[Fields], catalog: Catalog) -> Iterator[Machine]:
    """Yield the machine types of MachineConfig objects; memory is in MiB there."""
    for item in items:
        spec = item.block("spec")
        family = spec.block("machineFamily") if spec.has("machineFamily") else spec
        series = family.text("name") or item.block("metadata").text("name")
        for entry in family.blocks("machineTypes"):
            name = entry.text("name", required=True)
            resources = entry.block("resources")
            cpus, memory = resources.number("cpus", minimum=1), resources.number("memory", minimum=1)
            if cpus is None or memory is None:
                entry.fault("cpus and memory are needed", "resources")
                continue
            accelerator = resources.block("accelerator")
            tpu = accelerator.block("tpuConfig")
            before = catalog.get(name)
            yield Machine(
                name=name,
                family=series,
                arch=before.arch if before else "amd64",
                vcpu=cpus,
                memory_mib=memory,
                shared=bool(before and before.shared),
                gpu="" if tpu.data else accelerator.text("name"),
                gpus=0 if tpu.data else accelerator.number("fixedCount") or 0,
                tpu=accelerator.text("name") if tpu.data else "",
                chips=accelerator.number("fixedCount") or 0 if tpu.data else 0,
                topology=tpu.text("topology") or (before.topology if before else ""),
                local_ssds=resources.block("LocalSSDConfig", "localSSDConfig").number("fixedCount", "automaticCount")
                or 0,
                sources=("machineconfig",),
            )


def read_machine_types(items: Iterable[Fields], catalog: Catalog) -> Iterator[Machine]:
    """Yield the machine types of `gcloud compute machine-types list --format=json`, each name once."""
    seen = set()
    for item in items:
        name = item.text("name", required=True)
        cpus, memory = item.number("guestCpus", minimum=1), item.number("memoryMb", minimum=1)
        if cpus is None or memory is None:
            item.fault("guestCpus and memoryMb are needed")
            continue
        if name in seen:
            continue
        seen.add(name)
        gpu = next(item.blocks("accelerators"), Fields({}, item.at("accelerators"), item.faults))
        before = catalog.get(name)
        kind = gpu.text("guestAcceleratorType")
        is_tpu = kind.startswith("ct") or "tpu" in kind
        count = gpu.number("guestAcceleratorCount") or 0
        yield Machine(
            name=name,
            family=name.split("-")[0],
            arch="arm64" if item.text("architecture").upper() == "ARM64" else "amd64",
            vcpu=cpus,
            memory_mib=memory,
            shared=item.flag("isSharedCpu"),
            gpu="" if is_tpu else kind,
            gpus=0 if is_tpu else count,
            tpu=before.tpu if before else "",
            chips=before.chips if before else 0,
            topology=before.topology if before else "",
            local_ssds=before.local_ssds if before else 0,
            local_ssd_gib=before.local_ssd_gib if before else 375,
            sources=("gcloud",),
        )
