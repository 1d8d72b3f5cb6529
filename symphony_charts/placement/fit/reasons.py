"""Reasons say why a group cannot be scheduled, in the smallest form, and the nearest thing that would help."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from symphony_charts.formats.names import nearest
from symphony_charts.formats.quantity import MIB, cores_text
from symphony_charts.placement.allocatable import NodeSpec, allocatable, memory_margin, system_profile
from symphony_charts.placement.catalog import Catalog, Machine
from symphony_charts.placement.fit.demand import Shape
from symphony_charts.placement.fit.devices import sharing_fault, slice_fault
from symphony_charts.placement.fit.podspec import labels_match, untolerated_taint
from symphony_charts.placement.fit.supply import Cluster
from symphony_charts.placement.pools.pool import Amounts, Pool

_KINDS = {"label": "with other labels", "taint": "tainted", "size": "too small"}
_WORDS = {"cpu": "CPU", "memory": "memory", "ephemeral-storage": "ephemeral storage", "nvidia.com/gpu": "GPUs"}


def amount_text(resource: str, amount: int) -> str:
    """Return an amount for people: ``7.51 CPU``, ``25.2 GiB memory``, ``2 GPUs``."""
    name = _WORDS.get(resource, resource)
    if resource == "cpu":
        return f"{cores_text(amount)} {name}"
    if resource in ("memory", "ephemeral-storage"):
        return f"{amount // MIB}Mi {name}" if amount < 1024 * MIB else f"{amount / (1024 * MIB):.2f} GiB {name}"
    return f"{amount} {name}"


def obstacles(shape: Shape, pool: Pool) -> list[tuple[str, str]]:
    """Everything that keeps such a pod off an empty node of the pool: (kind, text); kinds are label, taint, size."""
    reasons: list[tuple[str, str]] = []
    for key, value in shape.selector:
        if pool.leaves_open(key):
            reasons.append(("label", f"its label {key} is unknown"))
        elif pool.labels.get(key) != value:
            has = pool.labels.get(key)
            reasons.append(("label", f"label {key} is {has}, not {value}" if has else f"no label {key}={value}"))
    open_labels = _open_labels(shape, pool)
    if not labels_match({}, shape.affinity, pool.labels, assumed=open_labels):
        reasons.append(("label", "node affinity does not match"))
    elif not labels_match({}, shape.affinity, pool.labels, ruled_out=open_labels):
        reasons.append(("label", f"node affinity depends on labels that are unknown: {', '.join(open_labels)}"))
    taint = untolerated_taint(shape.tolerations, pool.taints)
    if taint:
        reasons.append(("taint", f"taint {taint} is not tolerated"))
    usable = pool.usable
    for resource, amount in shape.requests:
        if amount > usable.get(resource, 0):
            offered = amount_text(resource, usable.get(resource, 0))
            reasons.append(("size", f"needs {amount_text(resource, amount)}, a node offers {offered}"))
    shared = sharing_fault(shape, pool.labels, pool.allocatable.get("nvidia.com/gpu", 0))[0]
    if shared:
        reasons.append(("size", shared))
    if pool.max_nodes < 1:
        reasons.append(("size", "it may have no node at all"))
    return reasons


def _open_labels(shape: Shape, pool: Pool) -> list[str]:
    required = {requirement.key for term in shape.affinity or () for requirement in term if not requirement.is_field}
    return sorted(key for key in required | {key for key, _ in shape.selector} if pool.leaves_open(key))


def why_not(cluster: Cluster, demand: int, catalog: Catalog) -> tuple[str, str]:
    """Return the smallest reason why no node can hold a pod of `demand`, with counts of pools, and a fix."""
    why, fix = _smallest_reason(cluster, demand, catalog)
    return why + _counts(cluster.demands[demand].shape, cluster.pools), fix


def _counts(shape: Shape, pools: Sequence[Pool]) -> str:
    kinds = Counter(kind for pool in pools for kind, _ in obstacles(shape, pool)[:1])
    counted = ", ".join(f"{kinds[kind]} {words}" for kind, words in _KINDS.items() if kinds[kind])
    return f" ({len(pools)} pools: {counted})" if len(kinds) > 1 else ""


def _smallest_reason(cluster: Cluster, demand: int, catalog: Catalog) -> tuple[str, str]:
    shape = cluster.demands[demand].shape
    open_pools = {cluster.classes[node].pool for node in cluster.allowed[demand]}
    for number in sorted(open_pools):
        fault = slice_fault(cluster.demands[demand], cluster.pools[number])
        if fault[0]:
            return fault
    for number in sorted(open_pools):
        pool = cluster.pools[number]
        fault = sharing_fault(shape, pool.labels, pool.allocatable.get("nvidia.com/gpu", 0))
        if fault[0]:
            return fault
    if open_pools:
        return _too_large(shape, [cluster.pools[number] for number in sorted(open_pools)], catalog)
    return _kept_out(shape, cluster.pools)


def _too_large(shape: Shape, pools: list[Pool], catalog: Catalog) -> tuple[str, str]:
    """Return the pool that comes nearest, by the largest excess of any resource."""

    def excess(pool: Pool) -> tuple[float, float, str]:
        usable = pool.usable
        over = [amount / usable[name] if usable.get(name) else 1e9 for name, amount in shape.requests]
        return (max(over), sum(over), pool.name)

    best = min(pools, key=excess)
    usable = best.usable
    parts, fixes = [], []
    for name, amount in shape.requests:
        if amount > usable.get(name, 0):
            parts.append((name, amount))
            if usable.get(name):
                fixes.append(_floor_text(name, usable[name]))
    machine = best.machine_type or best.name
    if not parts:
        return f"{best.name} may have no node at all", f"raise max_nodes of {best.name}"
    needs = " and ".join(amount_text(name, amount) for name, amount in parts)
    offers = " and ".join(amount_text(name, usable.get(name, 0)).split(" ")[0] for name, _ in parts)
    larger = _larger_machine(shape, best, catalog)
    ways = ([f"ask for {' and '.join(fixes)}"] if len(fixes) == len(parts) else []) + larger
    return f"needs {needs}; {machine} offers {offers} after system pods", ", or ".join(ways) or "add a pool that has it"


def _floor_text(resource: str, amount: int) -> str:
    if resource == "cpu":
        return f"{cores_text(amount // 10 * 10)} CPU" if amount >= 100 else f"{amount}m CPU"
    return f"{amount // MIB}Mi memory" if resource == "memory" else amount_text(resource, amount)


def _larger_machine(shape: Shape, pool: Pool, catalog: Catalog) -> list[str]:
    """Return the smallest machine of the same series that would do; its GPUs count if they are built in."""
    now = catalog.get(pool.machine_type)
    if now is None or "custom" in now.name:
        return []
    series = now.name.rsplit("-", 1)[0]
    larger = sorted(
        (m for m in catalog.machines.values() if m.name.rsplit("-", 1)[0] == series and m.vcpu > now.vcpu),
        key=lambda m: (m.vcpu, m.memory_mib),
    )
    for machine in larger:
        offered = _offer(machine, pool)
        if all(offered.get(name, 0) >= amount for name, amount in shape.requests):
            return [f"use {machine.name} (not in this cluster)"]
    return []


def _offer(machine: Machine, like: Pool) -> Amounts:
    """Return what a node of `machine` offers, with the disk, pods and attached GPUs of the pool."""
    node = NodeSpec(vcpu=machine.vcpu, memory_mib=machine.memory_mib, machine_type=machine.name, arch=machine.arch)
    offer = allocatable(node)
    system = system_profile(gpu=bool(machine.gpus or like.gpus), tpu=machine.chips > 0)
    left = {name: amount - system.get(name, 0) for name, amount in offer.items()}
    left["memory"] -= memory_margin(offer["memory"], "model")
    left["ephemeral-storage"] = like.allocatable.get("ephemeral-storage", 0)
    left["nvidia.com/gpu"] = machine.gpus or like.attached_gpus
    left["google.com/tpu"] = machine.chips
    return left


def _kept_out(shape: Shape, pools: tuple[Pool, ...]) -> tuple[str, str]:
    for key, value in shape.selector:
        if not any(pool.labels.get(key) == value or pool.leaves_open(key) for pool in pools):
            values = sorted({pool.labels[key] for pool in pools if key in pool.labels})
            near = nearest(value, values)
            present = f"nodes have {', '.join(values[:5])}" if values else f"no node has the label {key}"
            return f"no pool has the label {key}={value}", (f'did you mean "{near}"? ' if near else "") + present
    tainted = [
        (pool, taint)
        for pool in pools
        if labels_match(dict(shape.selector), shape.affinity, pool.labels, assumed=_open_labels(shape, pool))
        and (taint := untolerated_taint(shape.tolerations, pool.taints))
    ]
    if tainted:
        pool, taint = min(tainted, key=lambda pair: pair[0].name)
        others = f" (and {len(tainted) - 1} more pools)" if 1 < len(tainted) == len(pools) else ""
        return f"does not tolerate {taint} of {pool.name}{others}", f"add a toleration of {taint.key}, or use assign_to"
    if not pools:
        return "there are no node pools", "give a file that describes some"
    return "node selector and node affinity match no pool together", "loosen one of them, or see --explain"


def why_left_over(cluster: Cluster, demand: int, missing: int) -> tuple[str, str]:
    """Return why some pods are left over though each could run, and how many more nodes are needed."""
    count = cluster.demands[demand].count
    rooms = cluster.fits[demand]
    if demand in cluster.anti_affine[demand]:
        nodes = sum(cluster.classes[node].count for node in rooms)
        return f"{count} pods of which two never share a node, and {nodes} nodes", "fewer replicas, or more nodes"
    best = max(rooms, key=lambda node: (rooms[node], cluster.pools[cluster.classes[node].pool].name))
    pool = cluster.pools[cluster.classes[best].pool]
    more = -(-missing // rooms[best])
    names = sorted({cluster.pools[cluster.classes[node].pool].name for node in rooms})
    full = ", ".join(names[:3]) + (" and others" if len(names) > 3 else "")
    limit = f"its maximum of {pool.max_nodes} nodes" if len(names) == 1 else "their maximum of nodes"
    what = f"{count - missing} of {count} fit; {full} {'is' if len(names) == 1 else 'are'} full at {limit}"
    if pool.is_multi_host:
        slices = -(-missing // max(1, pool.max_nodes))
        more_pools = f"add {slices} pool{'s' if slices > 1 else ''} like {pool.name}"
        return what, f"{more_pools} (a TPU slice never grows), or ask for less"
    return what, f"raise max_nodes of {pool.name} by {more}, or ask for less"
