"""Each process of a run gets GPUs of the machine, as many as it asks for.

Sources: NVIDIA, CUDA C++ Programming Guide, "CUDA Environment Variables" (CUDA_VISIBLE_DEVICES), and the MIG User
Guide, "Running CUDA Applications"; the formats are those of ``nvidia-smi --query-gpu`` and ``nvidia-smi -L``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from symphony_charts.local.plan.overrides import replicas_here
from symphony_charts.local.plan.replicas import replica_name
from symphony_charts.spec.model import Experiment, Process
from symphony_charts.spec.pods import pods_of

__all__ = [
    "CUDA_VISIBLE",
    "Gpu",
    "GpuRequest",
    "assign_gpus",
    "gpu_environment",
    "gpu_requests",
    "gpus_here",
    "parse_gpus",
    "visible",
]

# By this variable CUDA is told what it may use.
CUDA_VISIBLE = "CUDA_VISIBLE_DEVICES"
_INSTANCE = re.compile(r"\s+MIG .*\(UUID: (?P<id>MIG-[^)]+)\)")
_WHOLE = re.compile(r"GPU \d+: .*\(UUID: (?P<id>GPU-[^)]+)\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU, or one MIG instance of it, by the `id` under which CUDA knows it; `index` is nvidia-smi's."""

    index: int
    id: str
    memory: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuRequest:
    """A process of the run, as ``pod/process``, that asks for `count` GPUs."""

    process: str
    count: int


def gpus_here(process: Process) -> int:
    """Return the number of GPUs a process asks for on one machine."""
    if process.local is not None and process.local.gpus is not None:
        return process.local.gpus
    assigned = process.assign_to
    if not process.gpus and assigned is not None and assigned.assign_to == "gpu":
        return assigned.gpu_count or 1
    return process.gpus


def gpu_requests(experiment: Experiment) -> list[GpuRequest]:
    """Return the processes that ask for GPUs, replicas apart, in the order in which they are served."""
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
    """Return the GPUs in the lines of ``--query-gpu=index,uuid,memory.total --format=csv,noheader``, and of ``-L``.

    A GPU that is divided stands there as its instances. Raises ValueError for other texts.
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
    """Return the GPUs that a program sees where CUDA_VISIBLE_DEVICES is `caller` (None: not set), in that order.

    As in CUDA: indexes count in the order of nvidia-smi, beginnings of UUIDs do where one GPU alone has them, and
    what comes after the first entry that names none (such as -1) is not seen.
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
        # CUDA numbers whole GPUs; of a divided one it takes the first instance.
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
    """Return the ids of each process: its own, or with `share` the next ones in turn; None when there are too few."""
    needed = (
        max((request.count for request in requests), default=0) if share else sum(request.count for request in requests)
    )
    if needed > len(gpus):
        return None
    turn = _in_turn([gpu.id for gpu in gpus])
    return {request.process: tuple(next(turn) for _ in range(request.count)) for request in requests}


def _in_turn(ids: Sequence[str]) -> Iterator[str]:
    while True:
        yield from ids


def gpu_environment(ids: Sequence[str], declared: str | None) -> dict[str, str]:
    """Return the GPU variables of a process with GPUs `ids`; without any it sees none, as in a pod.

    `declared` is a CUDA_VISIBLE_DEVICES that the experiment itself sets: its numbers count in the GPUs of the process,
    since in its container there are no others; of one that asked for none it is left as it is, as a pod leaves it.
    """
    if not ids and declared is not None:
        return {CUDA_VISIBLE: declared}
    own = [Gpu(index=number, id=identity) for number, identity in enumerate(ids)]
    seen = [gpu.id for gpu in visible(own, declared)]
    order = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"} if ids else {}
    return {**order, CUDA_VISIBLE: ",".join(seen)}
