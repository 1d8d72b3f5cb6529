"""A GKE ComputeClass (cloud.google.com/v1) becomes pools: each priority is one, in order.

A pod asks for the class by the label ``cloud.google.com/compute-class``; nodes carry it as a label and a taint. How
many nodes GKE makes is bounded by quota alone, so `max_nodes` is a stated large number unless a pool is named.
"""

from __future__ import annotations

from dataclasses import replace

from symphony_charts.formats.field_reader import Fields
from symphony_charts.placement.machines.catalog import Catalog, Machine
from symphony_charts.placement.pools.gke_node_pool import PoolFacts, make_pool, read_taints
from symphony_charts.placement.pools.pool import GKE_POOL_LABEL, Pool, Provisioning, Taint

__all__ = ["read_compute_class"]

_CLASS_LABEL = "cloud.google.com/compute-class"
# What one scale-up of GKE adds at most without more ado; quota may be smaller, which no file says.
UNBOUNDED = 500


def read_compute_class(item: Fields, catalog: Catalog) -> list[Pool]:
    """One pool per priority, named ``<class>-<priority>``."""
    name = item.block("metadata").text("name", required=True)
    spec = item.block("spec")
    config, defaults = spec.block("nodePoolConfig"), spec.block("priorityDefaults")
    pools = []
    for index, priority in enumerate(spec.blocks("priorities"), start=1):
        if priority.has("nodepools"):
            pools += [_existing(name, pool, priority) for pool in priority.texts("nodepools")]
            continue
        machine = _machine(priority, catalog)
        if machine is None:
            continue
        facts = PoolFacts(
            name=f"{name}-{index}",
            source=item.faults.source(priority.path),
            machine_type=machine.name,
            image=config.text("imageType"),
            labels={_CLASS_LABEL: name, **config.mapping("nodeLabels")},
            taints=(*read_taints(config, "taints"), Taint(key=_CLASS_LABEL, value=name)),
            gpu_type=priority.block("gpu").text("type"),
            gpu_count=priority.block("gpu").number("count") or 0,
            provisioning=_provisioning(priority),
            zones=tuple(priority.block("location").texts("zones") or defaults.block("location").texts("zones")),
            max_nodes=UNBOUNDED,
            max_pods=priority.number("maxPodsPerNode", minimum=1) or 110,
            placement=priority.block("placement").text("policyName"),
            tpu_topology=priority.block("tpu").text("topology"),
            accuracy="model" if priority.has("machineType") else "guess",
            notes=(f"priority {index} of compute class {name}; its number of nodes is bounded by quota alone",),
        )
        pool = make_pool(facts, catalog, priority)
        if pool is not None:
            labels = {key: value for key, value in pool.labels.items() if key != GKE_POOL_LABEL}
            pools.append(replace(pool, labels=labels, selector=(_CLASS_LABEL, name)))
    return [pool for pool in pools if pool is not None]


def _existing(name: str, pool: str, priority: Fields) -> Pool | None:
    priority.fault(
        f'compute class "{name}" uses the existing node pool "{pool}"', "nodepools", "give the cluster's node pools too"
    )
    return None


def _machine(priority: Fields, catalog: Catalog) -> Machine | None:
    """The machine a priority names, or the smallest of its family that is large enough."""
    named = priority.text("machineType")
    if named:
        machine = catalog.get(named)
        if machine is None:
            priority.fault(f'unknown machine type "{named}"', "machineType")
        return machine
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
