"""Resolve one `assign_to` on the node pools, by our rules or by Symphony's.

`decide` keeps Symphony's modes and keys, but calculates with the real free resources of a node: the share of a machine
is a share of allocatable minus system pods, so that `process_per_machine` processes always fit. `decide_like_symphony`
uses Symphony's own numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal

import msgspec

from symphony_charts.errors import PlacementError, SpecError
from symphony_charts.formats.names import nearest
from symphony_charts.formats.quantity import MIB, cores_text
from symphony_charts.placement.catalog import GPU_ALIASES, gpu_matches
from symphony_charts.placement.pools.pool import GKE_POOL_LABEL, Pool, Pools
from symphony_charts.spec.sources import Assignment, Toleration

# GKE's admission adds these to pods that request the device; written out, charts work on other clusters, too.
DEVICE_TOLERATIONS = {
    "nvidia.com/gpu": Toleration(key="nvidia.com/gpu", operator="Exists", effect="NoSchedule"),
    "google.com/tpu": Toleration(key="google.com/tpu", operator="Exists", effect="NoSchedule"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The resources and node settings of a process. `cpu` and `memory` are quantities; `pool` may be empty.

    `is_exclusive` asks for anti-affinity against all other pods on the node.
    """

    process: str = ""
    mode: str
    pool: str = ""
    cpu: str | None = None
    memory: str | None = None
    gpus: int | None = None
    tpus: int | None = None
    selector: tuple[tuple[str, str], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    is_exclusive: bool = False
    reason: str = ""

    @property
    def shared(self) -> tuple[Literal["cpu", "memory"], ...]:
        """The resources that the process gets on behalf of its whole pod: those of a share of a machine."""
        return ("cpu", "memory") if self.mode in ("machine", "gpu") else ()


def decide(assignment: Assignment, pools: Pools | None, *, wants_spot: bool = False, group_pool: str = "") -> Decision:
    """Resolve `assignment` on `pools`; None if no pools are known, which is only possible for named pools.

    An assignment that leaves the pool open gets `group_pool`, the pool of its group, if there is one.

    Raises SpecError for wrong use: an unknown pool or GPU type, a share that does not divide the GPUs, GPUs on a pool
    without any. The plan checks if everything fits.
    """
    if pools is None:
        return _blind(assignment)
    if assignment.assign_to == "machine":
        return _machine(assignment, _required_pool(assignment, pools))
    if assignment.assign_to == "gpu":
        return _gpu(assignment, pools)
    if assignment.assign_to == "node_pool":
        return _on_pool(assignment, _required_pool(assignment, pools), "as asked")
    if assignment.node_pool_name is not None:
        return _on_pool(assignment, named_pool(assignment.node_pool_name, pools), "the process names this pool")
    if group_pool:
        count = assignment.gpu_count if assignment.gpu_count is not None else int(assignment.gpu_type is not None)
        asked = msgspec.structs.replace(assignment, gpu_count=count)
        return _on_pool(asked, named_pool(group_pool, pools), "the pool of its group")
    return _best_fit(assignment, pools, wants_spot=wants_spot)


def joint_pool(assignments: Iterable[Assignment], pools: Pools | None, *, wants_spot: bool) -> str:
    """Return the pool for those processes of a group that name none: that of the others, else the best fit for all.

    Empty if no pool fits, or if the processes name several.
    """
    every = list(assignments)
    named = {each.node_pool_name for each in every if each.node_pool_name is not None}
    if named or pools is None:
        return named.pop() if len(named) == 1 else ""
    kinds = [each.gpu_type for each in every if each.gpu_type is not None]
    total = Assignment(
        assign_to="resource",
        cpu=sum(each.cpu or 0 for each in every),
        memory_m=sum(each.memory_m or 0 for each in every),
        gpu_count=sum(int(each.gpu_type is not None) if each.gpu_count is None else each.gpu_count for each in every),
        gpu_type=kinds[0] if kinds else None,
    )
    try:
        return _best_fit(total, pools, wants_spot=wants_spot).pool
    except SpecError:
        return ""  # the process with this GPU type reports it


def named_pool(name: str, pools: Pools) -> Pool:
    """Return the pool of that name. Raises SpecError with the nearest name."""
    pool = pools.get(name)
    if pool is None:
        near = nearest(name, pools.names)
        hint = f"the pools are {', '.join(pools.names[:20])}" if pools.names else f"{pools.source} has no pools"
        hint = f'did you mean "{near}"? {hint}' if near else hint
        raise SpecError.one(f'unknown node pool "{name}"', "node_pool_name", hint)
    return pool


def pool_selector(pool: Pool) -> tuple[tuple[str, str], ...]:
    """Return the label of the pool's nodes: GKE's, else Cloudwise's ``name``; empty if unknown."""
    if pool.selector is not None:
        return (pool.selector,)
    labels = ((label, pool.labels[label]) for label in (GKE_POOL_LABEL, "name") if label in pool.labels)
    return tuple(islice(labels, 1))


def _pool_tolerations(pool: Pool) -> tuple[Toleration, ...]:
    return tuple(
        DEVICE_TOLERATIONS.get(taint.key)
        or Toleration(
            key=taint.key, operator="Equal" if taint.value else "Exists", value=taint.value or None, effect=taint.effect
        )
        for taint in pool.taints
    )


def _required_pool(assignment: Assignment, pools: Pools) -> Pool:
    if assignment.node_pool_name is None:
        mode = assignment.assign_to
        raise SpecError.one(f"assign_to {mode} needs a node pool", "node_pool_name", f"one of {', '.join(pools.names)}")
    return named_pool(assignment.node_pool_name, pools)


def _machine(assignment: Assignment, pool: Pool) -> Decision:
    """Return one n-th of a machine of the pool: of all resources left for pods, rounded down."""
    parts = 1 if assignment.process_per_machine is None else assignment.process_per_machine
    if parts < 1 or parts != int(parts):
        raise SpecError.one(f"process_per_machine is {parts}", "process_per_machine", "use 1 for a whole machine")
    usable = pool.usable
    gpus, chips = usable.get("nvidia.com/gpu", 0), usable.get("google.com/tpu", 0)
    for name, devices in (("GPU", gpus), ("TPU chip", chips)):
        if devices % parts:
            divisors = ", ".join(str(n) for n in range(1, devices + 1) if devices % n == 0)
            what = f"{parts} processes cannot share {devices} {name}s of a machine in pool {pool.name} evenly"
            raise SpecError.one(what, "process_per_machine", f"use one of {divisors}")
    share = "the whole of" if parts == 1 else f"1/{parts} of"
    cpu, memory = usable.get("cpu", 0) // parts, usable.get("memory", 0) // parts // MIB
    reason = f"{share} what {_machine_name(pool)} leaves after system pods: {cores_text(cpu)} CPU, {memory} MiB"
    exclusive = bool(assignment.exclusive) and parts > 1
    if parts == 1:
        reason += "; the pod fills its node"
    elif exclusive:
        reason += "; anti-affinity keeps other pods off the node"
    return Decision(
        mode=assignment.assign_to,
        pool=pool.name,
        cpu=f"{cpu}m",
        memory=f"{memory}Mi",
        gpus=gpus // parts or None,
        tpus=chips // parts or None,
        selector=pool_selector(pool) + _tpu_selector(pool),
        tolerations=_pool_tolerations(pool),
        is_exclusive=exclusive,
        reason=reason,
    )


def _tpu_selector(pool: Pool) -> tuple[tuple[str, str], ...]:
    if pool.tpu is None:
        return ()
    prefix = "cloud.google.com/gke-tpu-"
    return ((f"{prefix}accelerator", pool.tpu.type), (f"{prefix}topology", pool.tpu.topology))


def _gpu(assignment: Assignment, pools: Pools) -> Decision:
    """Return one GPU and its share of the machine.

    With `cpu`, `memory_m` or `gpu_type` this is Symphony's documented call, which requests these resources instead.
    """
    asked = (assignment.cpu, assignment.memory_m, assignment.gpu_type, assignment.gpu_count)
    if any(value is not None for value in asked):
        count = 1 if assignment.gpu_count is None else assignment.gpu_count
        return decide(msgspec.structs.replace(assignment, assign_to="resource", gpu_count=count), pools)
    pool = _required_pool(assignment, pools)
    gpus = pool.usable.get("nvidia.com/gpu", 0)
    if not gpus:
        raise SpecError.one(f"pool {pool.name} has no GPU", "node_pool_name", _gpu_pools(pools))
    return _machine(msgspec.structs.replace(assignment, process_per_machine=gpus), pool)


def _gpu_pools(pools: Pools) -> str:
    names = [f"{pool.name} ({pool.gpu_type})" for pool in pools.pools if pool.gpus]
    return f"pools with GPUs are {', '.join(names)}" if names else "no pool of this cluster has GPUs"


def _on_pool(assignment: Assignment, pool: Pool, reason: str) -> Decision:
    gpus, has = assignment.gpu_count or 0, pool.usable.get("nvidia.com/gpu", 0)
    if gpus > has:
        raise SpecError.one(f"the process requests {gpus} GPUs, and nodes of pool {pool.name} have {has}", "gpu_count")
    if assignment.gpu_type is not None and not gpu_matches(assignment.gpu_type, pool.gpu_type):
        what = f"pool {pool.name} has {pool.gpu_type or 'no GPUs'}, not {assignment.gpu_type}"
        raise SpecError.one(what, "gpu_type", "remove gpu_type, or name another pool")
    return _as_asked(
        assignment,
        pool=pool.name,
        selector=pool_selector(pool) + _tpu_selector(pool),
        tolerations=_pool_tolerations(pool),
        reason=f"{_machine_name(pool)}: {reason}",
    )


def _as_asked(assignment: Assignment, **more: Any) -> Decision:
    """Return a decision with the assignment's own numbers; CPU in whole millicores, memory in whole MiB."""
    cpu, memory = assignment.cpu, assignment.memory_m
    given = Decision(
        mode=assignment.assign_to,
        cpu=None if cpu is None else cores_text(round(cpu * 1000)),
        memory=None if memory is None else f"{int(memory)}Mi",
        gpus=assignment.gpu_count or None,
        is_exclusive=bool(assignment.exclusive),
    )
    return replace(given, **more)


def _best_fit(assignment: Assignment, pools: Pools, *, wants_spot: bool) -> Decision:
    """Return a decision for the pool that this request uses best; a process without GPUs avoids GPU pools."""
    kind = assignment.gpu_type
    gpus = assignment.gpu_count if assignment.gpu_count is not None else (1 if kind else 0)
    types = {pool.gpu_type for pool in pools.pools if pool.gpus}
    if kind is not None and not any(gpu_matches(kind, each) for each in types):
        # Suggest only types that some pool has; otherwise the nearest name to a known type would be that type itself.
        aliases = {name for name in GPU_ALIASES for each in types if gpu_matches(name, each)}
        near = nearest(kind.lower(), types | aliases)
        hint = f'did you mean "{near}"? ' * bool(near) + _gpu_pools(pools)
        raise SpecError.one(f'no pool has GPUs of type "{kind}"', "gpu_type", hint)
    cpu, memory = round((assignment.cpu or 0) * 1000), int((assignment.memory_m or 0) * MIB)
    need = {"cpu": cpu, "memory": memory, "nvidia.com/gpu": gpus}
    fitting = [
        pool
        for pool in pools.pools
        if _is_kind(pool, gpus, kind) and all(pool.usable.get(name, 0) >= amount for name, amount in need.items())
    ]
    if not fitting:
        # Nothing fits: the plan reports it with the nearest fix, and the pod must still tolerate the device there.
        tolerations = (DEVICE_TOLERATIONS["nvidia.com/gpu"],) if gpus else ()
        reason = "no pool with these GPUs is large enough" if gpus else "no pool without GPUs is large enough"
        return _as_asked(assignment, gpus=gpus or None, tolerations=tolerations, reason=reason)
    pool = min(fitting, key=lambda pool: _waste(pool, need, wants_spot=wants_spot))
    others = sorted(other.name for other in fitting if other is not pool)
    before = f", before {', '.join(others[:3])}" if others else ""
    reason = f"best fit of {len(fitting)}: {_machine_name(pool)}{before}"
    return _as_asked(
        assignment,
        pool=pool.name,
        gpus=gpus or None,
        selector=pool_selector(pool),
        tolerations=_pool_tolerations(pool),
        reason=reason,
    )


def _is_kind(pool: Pool, gpus: int, kind: str | None) -> bool:
    if gpus:
        return kind is None or gpu_matches(kind, pool.gpu_type)
    return not pool.usable.get("nvidia.com/gpu") and pool.tpu is None


def _waste(pool: Pool, need: dict[str, int], *, wants_spot: bool) -> tuple[object, ...]:
    usable = pool.usable
    shares = [amount / usable[name] for name, amount in need.items() if usable.get(name)]
    is_ordinary = (pool.provisioning == "spot") == wants_spot and not pool.queued
    return (pool.arch != "amd64", not is_ordinary, pool.max_nodes < 1, -sum(shares), usable.get("cpu", 0), pool.name)


def _blind(assignment: Assignment) -> Decision:
    if assignment.assign_to in ("machine", "gpu") and assignment.cpu is None:
        what = f"assign_to {assignment.assign_to} needs the node pools"
        raise SpecError.one(what, "", "set placement.pools to a file that describes them, or give --pools FILE")
    name = assignment.node_pool_name
    return _as_asked(
        assignment,
        pool=name or "",
        selector=() if name is None else ((GKE_POOL_LABEL, name),),
        tolerations=(DEVICE_TOLERATIONS["nvidia.com/gpu"],) if assignment.gpu_count else (),
        reason="without a file of node pools, the requests stay unchanged",
    )


def _machine_name(pool: Pool) -> str:
    return f"{pool.machine_type} of {pool.name}" if pool.machine_type else f"a node of {pool.name}"


# Symphony reads Cloudwise's labels (`cpu`, `memory_m`, `gpu_type`, `gpu_count`), compares with the machine's full size,
# takes the first pool of the file, and selects by the label ``name``. Source: SurrealAI/symphony,
# symphony/kube/machine_dispatcher.py.


def decide_like_symphony(assignment: Assignment, pools: Pools | None) -> Decision:
    """Return Symphony's decision. Raises PlacementError if no pool matches, SpecError for wrong use."""
    if pools is None:
        raise SpecError.one("formula: symphony needs the node pools", "placement.pools", "give --pools FILE")
    mode, name = assignment.assign_to, assignment.node_pool_name
    is_free = mode == "resource" and name is None
    pool = _first(assignment, pools) if is_free else _required_pool(assignment, pools)
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
        what = f'pool {pool.name} has no numeric label "{key}", which formula: symphony needs'
        raise SpecError.one(what, pool.source, "remove formula: symphony")
    return int(text)


def _first(assignment: Assignment, pools: Pools) -> Pool:
    """Return the first pool that is strictly larger than the request; only CPU pools if no GPU count is set."""
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
    values = {key: getattr(assignment, key) for key in ("cpu", "memory_m", "gpu_type", "gpu_count")}
    asked = ", ".join(f"{key}={value}" for key, value in values.items() if value is not None)
    raise PlacementError(f"no node pool is large enough for {asked}", pools.source, "remove formula: symphony")


def _requests(
    assignment: Assignment, pool: Pool, cpu: float | None, memory: float | None, gpus: int | None
) -> Decision:
    tolerations = [
        Toleration(
            key=taint.key, operator="Equal" if taint.value else None, value=taint.value or None, effect=taint.effect
        )
        for taint in pool.taints
        if (taint.key, taint.value) != ("nvidia.com/gpu", "present")
    ]
    if "gpu_count" in pool.labels:
        tolerations.append(DEVICE_TOLERATIONS["nvidia.com/gpu"])
    return Decision(
        mode=assignment.assign_to,
        pool=pool.name,
        cpu=None if cpu is None else f"{cpu:g}" if cpu < 1000 else str(cpu),
        memory=None if memory is None else f"{int(memory)}Mi",
        gpus=gpus or None,
        selector=(("name", pool.labels.get("name", pool.name)),),
        tolerations=tuple(tolerations),
        reason="Symphony's formula: (CPU - 0.6)/n, memory/(n + 1), the machine as built",
    )
