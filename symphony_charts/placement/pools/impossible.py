"""Machines and accelerators that Google does not sell together are refused, before anything is planned on them.

Source: Google's table of GPUs on n1 machines (count -> most vCPUs); all other GPUs are part of their machine types.
"""

from __future__ import annotations

from collections.abc import Iterator

from symphony_charts.placement.machines.catalog import Machine, gpu_matches

__all__ = ["device_faults", "parts_of"]

# GPUs that are attached to n1 machines: how many, and the vCPUs that a machine with so many may have.
_ATTACHED = {
    "nvidia-tesla-k80": {1: 8, 2: 16, 4: 32, 8: 64},
    "nvidia-tesla-p4": {1: 24, 2: 48, 4: 96},
    "nvidia-tesla-p100": {1: 16, 2: 32, 4: 96},
    "nvidia-tesla-v100": {1: 12, 2: 24, 4: 48, 8: 96},
    "nvidia-tesla-t4": {1: 48, 2: 48, 4: 96},
}
# GPUs that one device is cut into, by the compute slices at the head of the partition's name.
_PARTITIONS = {"1g": 7, "2g": 3, "3g": 2, "4g": 1, "7g": 1}
_QUARTERS = {"1g.20gb", "1g.35gb", "1g.45gb"}
_PARTITIONED = ("a100", "h100", "h200", "b200", "b300", "rtx-pro")


def parts_of(partition: str) -> int:
    """How many devices a GPU shows with this partition size; 1 without any, 0 for a size that is unknown."""
    if not partition:
        return 1
    return 4 if partition in _QUARTERS else _PARTITIONS.get(partition.split(".")[0], 0)


def device_faults(machine: Machine, gpu: str, count: int, partition: str) -> Iterator[tuple[str, str]]:
    """What cannot be about `count` GPUs of type `gpu` on `machine`, and what to do; nothing where all is well.

    A GPU that no table knows is believed: it may be newer than this package.
    """
    if partition and parts_of(partition) == 0:
        yield f'no GPU has partitions of "{partition}"', "sizes are such as 1g.5gb, 2g.10gb, 3g.20gb, 7g.40gb"
    elif partition and not any(kind in (gpu or machine.gpu) for kind in _PARTITIONED):
        yield f"{gpu or machine.gpu or 'a machine without GPUs'} has no partitions", "leave the partition size out"
    if not count and not gpu:
        return
    attached = next((limits for name, limits in _ATTACHED.items() if gpu_matches(gpu, name)), None)
    if machine.gpus:
        if gpu and not gpu_matches(gpu, machine.gpu):
            yield f"{machine.name} comes with {machine.gpu}, not {gpu}", f"name {machine.gpu}, or leave the GPU out"
        elif count and count != machine.gpus:
            yield f"{machine.name} has {machine.gpus} GPUs, not {count}", "the machine type says how many there are"
    elif attached is not None and machine.family != "n1":
        yield f"{gpu} is attached to n1 machines alone, not to {machine.name}", "use an n1 machine, or another GPU"
    elif attached is not None and count and count not in attached:
        yield f"no machine has {count} of {gpu}", f"{', '.join(map(str, attached))} are possible"
    elif attached is not None and count and machine.vcpu > attached[count]:
        most = attached[count]
        yield f"{machine.name} is too large for {count} of {gpu}: {most} vCPUs at most", "more GPUs, or fewer vCPUs"
    elif attached is None and machine.family in _CPU_ONLY:
        yield f"no GPU is attached to {machine.name}", "GPUs come with a2, a3, a4, g2 and g4, or are attached to n1"


_CPU_ONLY = frozenset({"n1", "n2", "n2d", "n4", "n4a", "n4d", "e2", "e4", "t2d", "t2a", "c2", "c2d", "c3", "c3d", "c4"})
