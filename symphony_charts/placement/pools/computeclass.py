"""A GKE ComputeClass (cloud.google.com/v1) becomes pools: each priority is one, in order.

A pod asks for the class by the label ``cloud.google.com/compute-class``; nodes carry it as a label and a taint. How
many nodes GKE makes is bounded by quota alone, so `max_nodes` is a stated large number unless a pool is named.
"""

from __future__ import annotations

from dataclasses import replace

from symphony_charts.formats.field_reader import Fields
from symphony_charts.placement.machines.catalog import Catalog, Machine
from symphony_charts.placement.pools.gke_node_pool import make_pool
from symphony_charts.placement.pools.node_config import (
    COMPUTE_CLASS,
    NodePoolConfig,
    huge_pages,
    read_taints,
    unknown_keys,
)
from symphony_charts.placement.pools.pool import GKE_POOL_LABEL, Pools, Provisioning, Taint

__all__ = ["read_compute_class"]

_PRIORITIES = "spec.priorities"
_CLASS_LABEL = "cloud.google.com/compute-class"
# What one scale-up of GKE adds at most without more ado; quota may be smaller, which no file says.
UNBOUNDED = 500


def read_compute_class(item: Fields, catalog: Catalog) -> Pools:
    """One pool per priority, named ``<class>-<priority>``; a priority that names existing pools wants those."""
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
        provisioning=_provisioning(priority),
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


def _provisioning(priority: Fields) -> Provisioning:
    if priority.flag("spot"):
        return "spot"
    return "flex-start" if priority.block("flexStart").flag("enabled") else "standard"
