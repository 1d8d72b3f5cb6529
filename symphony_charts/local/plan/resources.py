"""Assign GPUs to processes, and limit CPU and memory by systemd scopes or, for memory alone, by rlimits.

A scope is a control group for all children of a process: the kernel kills in it when memory is exhausted. RLIMIT_DATA
limits the allocations of one process and makes them fail; RLIMIT_AS would also count reservations, of which CUDA, Go
and Java make more than a machine has. Sources: systemd.resource-control(5), getrlimit(2); NVIDIA, CUDA C++ Programming
Guide, "CUDA Environment Variables", and MIG User Guide, "Running CUDA Applications"; ``nvidia-smi -L``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import cycle

from msgspec import Struct

from symphony_charts.formats.quantity import amount_of
from symphony_charts.local.plan.records import Limit, Limiter
from symphony_charts.local.plan.replicas import replica_name, replicas_here
from symphony_charts.spec.model import Experiment, Process, Step
from symphony_charts.spec.pods import pods_of, processes_of, resources_of

# CUDA uses only the devices in this variable.
CUDA_VISIBLE = "CUDA_VISIBLE_DEVICES"
_INSTANCE = re.compile(r"\s+MIG .*\(UUID: (?P<id>MIG-[^)]+)\)")
_WHOLE = re.compile(r"GPU \d+: .*\(UUID: (?P<id>GPU-[^)]+)\)")


class Gpu(Struct, frozen=True, kw_only=True):
    """One GPU, or one MIG instance of it: `id` is CUDA's name for it, `index` nvidia-smi's number."""

    index: int
    id: str
    memory: str = ""


class GpuRequest(Struct, frozen=True, kw_only=True):
    """A process of the run, as ``pod/process``, that requests `count` GPUs."""

    process: str
    count: int


def gpus_here(process: Process) -> int:
    if process.local is not None and process.local.gpus is not None:
        return process.local.gpus
    assigned = process.assign_to
    if not process.gpus and assigned is not None and assigned.assign_to == "gpu":
        return assigned.gpu_count or 1
    return process.gpus


def gpu_requests(experiment: Experiment) -> list[GpuRequest]:
    """Return the processes that request GPUs, one entry per replica, in the order of assignment."""
    pods = pods_of(experiment)
    return [
        GpuRequest(process=f"{replica_name(pod.name, index, count, pods)}/{name}", count=gpus_here(process))
        for pod in pods.values()
        for count in [replicas_here(pod)]
        for index in range(count)
        for name, process in pod.processes.items()
        if gpus_here(process)
    ]


def parse_gpus(query: str, listing: str) -> tuple[Gpu, ...]:
    """Return the GPUs from the output of ``--query-gpu=index,uuid,memory.total --format=csv,noheader``, and of ``-L``.

    A GPU with MIG is listed as its instances. Raises ValueError for other texts.
    """
    gpus: list[Gpu] = []
    instances = _instances(listing)
    for line in query.splitlines():
        if not line.strip():
            continue
        index, identity, memory = (part.strip() for part in line.split(","))
        whole = Gpu(index=int(index), id=identity, memory=memory)
        parts = [Gpu(index=whole.index, id=part) for part in instances.get(identity, ())]
        gpus += parts or [whole]
    return tuple(sorted(gpus, key=lambda gpu: gpu.index))


def _instances(listing: str) -> dict[str, list[str]]:
    instances_of: dict[str, list[str]] = {}
    parts: list[str] = []
    for line in listing.splitlines():
        if whole := _WHOLE.match(line):
            parts = instances_of.setdefault(whole["id"], [])
        elif instance := _INSTANCE.match(line):
            parts.append(instance["id"])
    return instances_of


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
    if not name.startswith(("GPU-", "MIG-")):
        return None
    fitting = [gpu for gpu in gpus if gpu.id.startswith(name)]
    if name.startswith("MIG-GPU-") and not fitting:
        # The older form, MIG-GPU-<uuid>/<instance>/<instance>, which newer tools do not list.
        return Gpu(index=-1, id=name)
    return fitting[0] if len(fitting) == 1 else None


def assign_gpus(
    requests: Sequence[GpuRequest], gpus: Sequence[Gpu], *, share: bool
) -> dict[str, tuple[str, ...]] | None:
    """Return the ids for each process: exclusive, or with `share` round-robin; None if there are too few."""
    needed = (
        max((request.count for request in requests), default=0) if share else sum(request.count for request in requests)
    )
    if needed > len(gpus):
        return None
    turn = cycle(gpu.id for gpu in gpus)
    return {request.process: tuple(next(turn) for _ in range(request.count)) for request in requests}


def gpu_environment(ids: Sequence[str], declared: str | None) -> dict[str, str]:
    """Return the GPU variables of a process with GPUs `ids`; without any it sees none, as in a pod.

    `declared` is a CUDA_VISIBLE_DEVICES that the experiment itself sets: its numbers index the GPUs of the process, as
    in its container; without GPUs it stays unchanged, as in a pod.
    """
    if not ids and declared is not None:
        return {CUDA_VISIBLE: declared}
    own = [Gpu(index=number, id=identity) for number, identity in enumerate(ids)]
    seen = [gpu.id for gpu in visible(own, declared)]
    order = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"} if ids else {}
    return {**order, CUDA_VISIBLE: ",".join(seen)}


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
    properties = list(_properties([limit for limit in limits if limit.by == "systemd"]))
    if not properties:
        return ()
    return (
        *limiter.scope,
        *(word for text in properties for word in ("-p", text)),
        "--",
        "/usr/bin/env",
        "-u",
        "XDG_RUNTIME_DIR",
    )


def _properties(limits: Sequence[Limit]) -> Iterator[str]:
    for limit in limits:
        if limit.resource == "memory":
            yield f"MemoryMax={limit.amount}"
            # Kubernetes nodes have no swap.
            yield "MemorySwapMax=0"
        else:
            yield f"CPUQuota={max(1, limit.amount) / 10:g}%"


def limits_note(experiment: Experiment, limiter: Limiter) -> tuple[str, ...]:
    """Return notes on limits that are not as strict as in a pod."""
    asked = [limit for _, process in processes_of(experiment) for limit in limits_of(process, _EVERYTHING)]
    asked += [limit for step in experiment.prepare.values() for limit in limits_of(step, _EVERYTHING)]
    rlimits = [limit for limit in asked if limiter.by.get(limit.resource) == "rlimit"]
    lost = [limit for limit in asked if limit.resource not in limiter.by]
    parts = ["memory limits are rlimits, which apply to each process of a program separately"] if rlimits else []
    parts += [f"{' and '.join(sorted({limit.resource for limit in lost}))} limits have no effect"] if lost else []
    return (f"{'; '.join(parts)}: {limiter.why}",) if parts else ()
