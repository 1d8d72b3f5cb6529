"""Machine types in a user's own words are read: MachineConfig objects, `gcloud compute machine-types list`.

MachineConfig (machineconfigs.cloud.google.com/v1) is pushed into clusters by GKE itself and is the freshest source.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from symphony_charts.formats.field_reader import Fields
from symphony_charts.placement.machines.catalog import Catalog, Machine

__all__ = ["read_machine_configs", "read_machine_types"]


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
        if name in seen or cpus is None or memory is None:
            if cpus is None or memory is None:
                item.fault("guestCpus and memoryMb are needed")
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
