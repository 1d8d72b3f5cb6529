"""Assign GPUs to processes, and limit CPU and memory by systemd scopes or, for memory alone, by rlimits.

A scope is a control group for all children of a process: the kernel kills in it when memory is exhausted. RLIMIT_DATA
limits the allocations of one process and makes them fail; RLIMIT_AS would also count reservations, of which CUDA, Go
and Java make more than a machine has. Sources: systemd.resource-control(5), getrlimit(2); NVIDIA, CUDA C++ Programming
Guide, "CUDA Environment Variables", and MIG User Guide, "Running CUDA Applications"; ``nvidia-smi -L``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import cycle, islice

from msgspec import Struct

from symphony_charts.formats.quantity import amount_of
from symphony_charts.local.plan.records import Limit, Limiter
from symphony_charts.local.plan.replicas import replica_name, replicas_here
from symphony_charts.spec.model import Experiment, Process, Step
from symphony_charts.spec.pods import pods_of, processes_of, resources_of

# CUDA uses only the devices in this variable.
CUDA_VISIBLE = "CUDA_VISIBLE_DEVICES"
_LISTED = re.compile(r"(?:GPU (?P<index>\d+):|\s+MIG) .*\(UUID: (?P<id>(?:GPU|MIG)-[^)]+)\)")


class Gpu(Struct, frozen=True, kw_only=True):
    """One GPU, or one MIG instance of it: `id` is CUDA's name for it, `index` nvidia-smi's number."""

    index: int
    id: str


def gpus_here(process: Process) -> int:
    if process.local is not None and process.local.gpus is not None:
        return process.local.gpus
    assigned = process.assign_to
    if not process.gpus and assigned is not None and assigned.assign_to == "gpu":
        return assigned.gpu_count or 1
    return process.gpus


def gpu_requests(experiment: Experiment) -> dict[str, int]:
    """Return the GPUs that each process (``pod/process``) of each replica requests, in the order of assignment."""
    pods = pods_of(experiment)
    return {
        f"{replica_name(pod.name, index, count, pods)}/{name}": gpus_here(process)
        for pod in pods.values()
        for count in [replicas_here(pod)]
        for index in range(count)
        for name, process in pod.processes.items()
        if gpus_here(process)
    }


def parse_gpus(listing: str) -> tuple[Gpu, ...]:
    """Return the GPUs in the text of ``nvidia-smi -L``; one with MIG is its instances. Raises ValueError."""
    gpus: list[Gpu] = []
    for line in filter(None, map(_LISTED.match, listing.splitlines())):
        if line["index"]:
            gpus.append(Gpu(index=int(line["index"]), id=line["id"]))
        elif gpus:
            index = gpus[-1].index
            if gpus[-1].id.startswith("GPU-"):
                gpus.pop()
            gpus.append(Gpu(index=index, id=line["id"]))
    if listing.strip() and not gpus:
        raise ValueError(listing.strip().splitlines()[0])
    return tuple(gpus)


def visible(gpus: Sequence[Gpu], caller: str | None) -> tuple[Gpu, ...]:
    """Return the GPUs that a program sees if CUDA_VISIBLE_DEVICES is `caller` (None: not set), in that order.

    As in CUDA: indexes follow the order of nvidia-smi, unique prefixes of UUIDs are valid, and entries after the first
    invalid one (such as -1) are ignored.
    """
    if caller is None:
        return tuple(gpus)
    seen: list[Gpu] = []
    for entry in caller.split(","):
        named = _named(gpus, entry.strip())
        if named is None:
            break
        if named not in seen:
            seen.append(named)
    return tuple(seen)


def _named(gpus: Sequence[Gpu], name: str) -> Gpu | None:
    if name.isdecimal():
        # CUDA numbers whole GPUs; of one with MIG it takes the first instance.
        return next((gpu for gpu in gpus if gpu.index == int(name)), None)
    fitting = [gpu for gpu in gpus if gpu.id.startswith(name)] if name.startswith(("GPU-", "MIG-")) else []
    if name.startswith("MIG-GPU-") and not fitting:
        # The older form, MIG-GPU-<uuid>/<instance>/<instance>, which newer tools do not list.
        return Gpu(index=-1, id=name)
    return fitting[0] if len(fitting) == 1 else None


def gpus_needed(requests: Mapping[str, int], *, share: bool) -> int:
    return max(requests.values(), default=0) if share else sum(requests.values())


def assign_gpus(requests: Mapping[str, int], gpus: Sequence[Gpu], *, share: bool) -> dict[str, tuple[str, ...]] | None:
    """Return the ids for each process: exclusive, or with `share` round-robin; None if there are too few."""
    if gpus_needed(requests, share=share) > len(gpus):
        return None
    turn = cycle(gpu.id for gpu in gpus)
    return {process: tuple(islice(turn, count)) for process, count in requests.items()}


def gpu_environment(ids: Sequence[str], declared: str | None) -> dict[str, str]:
    """Return the GPU variables of a process with GPUs `ids`; without any it sees none, as in a pod.

    `declared` is a CUDA_VISIBLE_DEVICES that the experiment itself sets: its numbers index the GPUs of the process, as
    in its container; without GPUs it stays unchanged, as in a pod.
    """
    if not ids and declared is not None:
        return {CUDA_VISIBLE: declared}
    own = [Gpu(index=number, id=identity) for number, identity in enumerate(ids)]
    seen = ",".join(gpu.id for gpu in visible(own, declared))
    return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", CUDA_VISIBLE: seen} if ids else {CUDA_VISIBLE: seen}


_EVERYTHING = Limiter(by={"memory": "systemd", "cpu": "systemd"})


def limits_of(process: Process | Step, limiter: Limiter) -> tuple[Limit, ...]:
    limits = resources_of(process)[1] if isinstance(process, Process) else dict(process.limits)
    return tuple(
        Limit(resource=name, amount=amount_of(name, limits[name]), said=limits[name], by=by)
        for name in ("memory", "cpu")
        if name in limits and (by := limiter.by.get(name))
    )


def scope_words(limits: Sequence[Limit], limiter: Limiter) -> tuple[str, ...]:
    """Return the command that starts another one in a scope with `limits`; empty if systemd enforces none of them."""
    properties: list[str] = []
    for limit in limits:
        if limit.by == "systemd" and limit.resource == "memory":
            # Kubernetes nodes have no swap.
            properties += ["-p", f"MemoryMax={limit.amount}", "-p", "MemorySwapMax=0"]
        elif limit.by == "systemd":
            properties += ["-p", f"CPUQuota={max(1, limit.amount) / 10:g}%"]
    if not properties:
        return ()
    return (*limiter.scope, *properties, "--", "/usr/bin/env", "-u", "XDG_RUNTIME_DIR")


def limits_note(experiment: Experiment, limiter: Limiter) -> tuple[str, ...]:
    """Return notes on limits that are not as strict as in a pod."""
    if not experiment.local.limits:
        return ()
    programs: list[Process | Step] = [process for _, process in processes_of(experiment)]
    programs += experiment.prepare.values()
    asked = [limit for program in programs for limit in limits_of(program, _EVERYTHING)]
    rlimits = [limit for limit in asked if limiter.by.get(limit.resource) == "rlimit"]
    lost = [limit for limit in asked if limit.resource not in limiter.by]
    parts = ["memory limits are rlimits, which apply to each process of a program separately"] if rlimits else []
    parts += [f"{' and '.join(sorted({limit.resource for limit in lost}))} limits have no effect"] if lost else []
    return (f"{'; '.join(parts)}: {limiter.why}",) if parts else ()
