"""Symphony's own arithmetic is kept number for number, for migration tests (`formula="symphony"`).

It reads Cloudwise's labels (`cpu`, `memory_m`, `gpu_type`, `gpu_count`), compares with the machine as built, takes
the first pool of the file, and selects by the label ``name``. Source: SurrealAI/symphony,
symphony/kube/machine_dispatcher.py.
"""

from __future__ import annotations

from dataclasses import replace

from symphony_charts.errors import PlacementError, SpecError
from symphony_charts.placement.assign.rules import DEVICE_TOLERATIONS, Decision, named_pool
from symphony_charts.placement.pools.pool import Pool, Pools
from symphony_charts.spec.scheduling import Assignment, Toleration

__all__ = ["decide_like_symphony"]

GPU_KEY = "nvidia.com/gpu"


def decide_like_symphony(assignment: Assignment, pools: Pools) -> Decision:
    """Return Symphony's decision. Raises PlacementError without a pool, SpecError for wrong use."""
    mode, name = assignment.assign_to, assignment.node_pool_name
    if mode == "resource" and name is None:
        pool = _first(assignment, pools)
        return _requests(assignment, pool, assignment.cpu, assignment.memory_m, assignment.gpu_count)
    if name is None:
        raise SpecError.one(f"assign_to {mode} needs a node pool", "node_pool_name", f"one of {', '.join(pools.names)}")
    pool = named_pool(name, pools)
    if mode in ("resource", "node_pool"):
        return _requests(assignment, pool, assignment.cpu, assignment.memory_m, assignment.gpu_count)
    gpus = _label(pool, "gpu_count", required=False)
    parts = assignment.process_per_machine or 1
    if mode == "gpu":
        if not gpus:
            raise SpecError.one(f"pool {pool.name} has no GPU", "node_pool_name")
        parts = gpus
    cpu = int((_label(pool, "cpu") - 0.6) / parts * 1000) / 1000
    memory = _label(pool, "memory_m") / (parts + 1)
    return _requests(assignment, pool, cpu, memory, max(gpus // parts, 1) if gpus else None)


def _label(pool: Pool, key: str, *, required: bool = True) -> int:
    text = pool.labels.get(key)
    if text is None and not required:
        return 0
    if text is None or not text.isdecimal():
        what = f'pool {pool.name} has no label "{key}" as Cloudwise writes it'
        raise SpecError.one(what, pool.source, "leave out formula: symphony")
    return int(text)


def _first(assignment: Assignment, pools: Pools) -> Pool:
    """Return the first pool that is strictly larger than the request; CPU pools only without a GPU count."""
    for pool in pools.pools:
        gpus = _label(pool, "gpu_count", required=False)
        if assignment.memory_m is not None and not assignment.memory_m < _label(pool, "memory_m"):
            continue
        if assignment.cpu is not None and not assignment.cpu < _label(pool, "cpu"):
            continue
        if assignment.gpu_type is not None and assignment.gpu_type.lower() not in pool.labels.get("gpu_type", ""):
            continue
        if (assignment.gpu_count is None and gpus) or (assignment.gpu_count or 0) > gpus:
            continue
        return pool
    asked = ", ".join(
        f"{key}={value}"
        for key, value in (
            ("cpu", assignment.cpu),
            ("memory_m", assignment.memory_m),
            ("gpu_type", assignment.gpu_type),
            ("gpu_count", assignment.gpu_count),
        )
        if value is not None
    )
    raise PlacementError(f"no node pool is large enough for {asked}", pools.source, "leave out formula: symphony")


def _requests(
    assignment: Assignment, pool: Pool, cpu: float | None, memory: float | None, gpus: int | None
) -> Decision:
    own = [taint for taint in pool.taints if not (taint.key == GPU_KEY and taint.value == "present")]
    tolerations = [
        Toleration(
            key=taint.key, operator="Equal" if taint.value else None, value=taint.value or None, effect=taint.effect
        )
        for taint in own
    ]
    if "gpu_count" in pool.labels:
        tolerations.append(DEVICE_TOLERATIONS[GPU_KEY])
    decision = Decision(
        mode=assignment.assign_to,
        pool=pool.name,
        cpu=None if cpu is None else f"{cpu:g}" if cpu < 1000 else str(cpu),
        memory=None if memory is None else f"{int(memory)}Mi",
        gpus=gpus or None,
        tolerations=tuple(tolerations),
        reason="Symphony's formula: (CPU - 0.6)/n, memory/(n + 1), the machine as built",
    )
    return replace(decision, selector=(("name", pool.labels.get("name", pool.name)),))
