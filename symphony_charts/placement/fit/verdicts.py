"""Verdicts on groups, and the reasons for excluding nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Literal

from symphony_charts.formats.names import nearest
from symphony_charts.formats.quantity import MIB, cores_text
from symphony_charts.placement.fit.demand import Shape
from symphony_charts.placement.fit.devices import sharing_fault, slice_fault
from symphony_charts.placement.fit.podspec import labels_match, ports_conflict, untolerated_taint
from symphony_charts.placement.fit.supply import Cluster
from symphony_charts.placement.pools.pool import Pool, Pools, Uncertainty

Verdict = Literal["PROVEN", "PACKABLE", "UNKNOWN", "NO"]
WORST: tuple[Verdict, ...] = ("NO", "UNKNOWN", "PACKABLE", "PROVEN")


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The verdict on the pods of one group (or single process); `why` and `next` as in error messages."""

    name: str
    count: int
    verdict: Verdict
    why: str
    next: str = ""
    demand: int


Judge = Callable[[Callable[[Cluster], Cluster]], list[Group]]


def with_uncertainties(cluster: Cluster, pools: Pools, groups: Sequence[Group], judge: Judge) -> Iterator[Group]:
    """Yield the verdicts that hold for all possible values of uncertain facts about pools.

    PROVEN and PACKABLE remain if pools without uncertainty, or without one that may close a node, suffice; `judge`
    decides this for a part of the cluster. A NO remains unless there may be more nodes than counted.
    """
    if not pools.autoscaled and not any(pool.uncertainties for pool in cluster.pools):
        yield from groups
        return
    certain, likely = (
        {(each.demand, each.name): each.verdict for each in judge(partial(_without, weights=weights))}
        for weights in (("PACKABLE", "UNKNOWN"), ("UNKNOWN",))
    )
    for group in groups:
        best, next_best = certain[group.demand, group.name], likely[group.demand, group.name]
        if group.verdict == "NO":
            texts = (each.text for _, each in _uncertainties(cluster, group.demand) if each.may_grow)
            growing = next(iter((*texts, *pools.autoscaled)), "")
            yield replace(group, verdict="UNKNOWN", why=f"{group.why}; but {growing}") if growing else group
        elif group.verdict == "PROVEN" and best != "PROVEN":
            weight: Verdict = "PACKABLE" if next_best in ("PROVEN", "PACKABLE") else "UNKNOWN"
            yield _bounded(cluster, group, weight)
        elif group.verdict == "PACKABLE" and next_best not in ("PROVEN", "PACKABLE"):
            yield _bounded(cluster, group, "UNKNOWN")
        else:
            yield group


def _bounded(cluster: Cluster, group: Group, verdict: Verdict) -> Group:
    uncertainties = list(_uncertainties(cluster, group.demand))
    pool, uncertainty = next((pair for pair in uncertainties if pair[1].weight == verdict), uncertainties[0])
    others = sum(other.weight != "PROVEN" for _, other in uncertainties) - 1
    more = f", and {others} more" if others > 0 else ""
    hint = "give GKE's own data of the pool: `gcloud container node-pools list --format=json`, `kubectl get nodes`"
    return replace(group, verdict=verdict, why=f"pool {pool} is not fully known: {uncertainty.text}{more}", next=hint)


def _uncertainties(cluster: Cluster, demand: int) -> Iterator[tuple[str, Uncertainty]]:
    for number in cluster.pools_of(cluster.fits[demand]) or range(len(cluster.pools)):
        pool = cluster.pools[number]
        yield from ((pool.name, each) for each in pool.uncertainties)


def _without(cluster: Cluster, weights: Collection[str]) -> Cluster:
    """Return the cluster without pools that have uncertainties of these weights."""
    is_certain = [all(each.weight not in weights for each in pool.uncertainties) for pool in cluster.pools]
    return cluster.restricted(lambda _, node: is_certain[cluster.classes[node].pool])


_KINDS = {"label": "with other labels", "taint": "tainted", "size": "too small"}
_WORDS = {"cpu": "CPU", "memory": "memory", "ephemeral-storage": "ephemeral storage", "nvidia.com/gpu": "GPUs"}


def amount_text(resource: str, amount: int) -> str:
    """Return an amount as text: ``7.51 CPU``, ``25.2 GiB memory``, ``2 GPUs``."""
    name = _WORDS.get(resource, resource)
    if resource == "cpu":
        return f"{cores_text(amount)} {name}"
    if resource in ("memory", "ephemeral-storage"):
        return f"{amount // MIB}Mi {name}" if amount < 1024 * MIB else f"{amount / (1024 * MIB):.2f} GiB {name}"
    return f"{amount} {name}"


def obstacles(shape: Shape, pool: Pool) -> Iterator[tuple[str, str]]:
    """Yield all reasons (kind, text) that keep a pod off an empty node of the pool; kinds are label, taint, size."""
    for key, value in shape.selector:
        if pool.leaves_open(key):
            yield "label", f"its label {key} is unknown"
        elif pool.labels.get(key) != value:
            has = pool.labels.get(key)
            yield "label", f"label {key} is {has}, not {value}" if has else f"no label {key}={value}"
    open_labels = _open_labels(shape, pool)
    if not labels_match({}, shape.affinity, pool.labels, assumed=open_labels):
        yield "label", "node affinity does not match"
    elif not labels_match({}, shape.affinity, pool.labels, ruled_out=open_labels):
        yield "label", f"node affinity depends on unknown labels: {', '.join(open_labels)}"
    if taint := untolerated_taint(shape.tolerations, pool.taints):
        yield "taint", f"taint {taint} is not tolerated"
    usable = pool.usable
    for resource, amount in shape.requests:
        if amount > usable.get(resource, 0):
            offered = amount_text(resource, usable.get(resource, 0))
            yield "size", f"needs {amount_text(resource, amount)}, a node offers {offered}"
    if shared := sharing_fault(shape, pool, pool.labels)[0]:
        yield "size", shared
    if pool.max_nodes < 1:
        yield "size", "its max_nodes is 0"


def _open_labels(shape: Shape, pool: Pool) -> list[str]:
    return sorted(key for key in shape.node_keys if key and pool.leaves_open(key))


def why_not(cluster: Cluster, demand: int) -> tuple[str, str]:
    """Return the smallest reason why no node can hold a pod of `demand`, with counts of pools, and a fix."""
    why, fix = _smallest_reason(cluster, demand)
    pools, shape = cluster.pools, cluster.demands[demand].shape
    kinds = Counter(kind for pool in pools for kind, _ in islice(obstacles(shape, pool), 1))
    counted = ", ".join(f"{kinds[kind]} {words}" for kind, words in _KINDS.items() if kinds[kind])
    return why + (f" ({len(pools)} pools: {counted})" if len(kinds) > 1 else ""), fix


def _smallest_reason(cluster: Cluster, demand: int) -> tuple[str, str]:
    shape = cluster.demands[demand].shape
    open_pools = [cluster.pools[number] for number in cluster.pools_of(cluster.allowed[demand])]
    faults = [slice_fault(cluster.demands[demand], pool) for pool in open_pools]
    faults += (sharing_fault(shape, pool, pool.labels) for pool in open_pools)
    if fault := next((fault for fault in faults if fault[0]), None):
        return fault
    return _too_large(shape, open_pools) if open_pools else _kept_out(cluster, shape)


def _too_large(shape: Shape, pools: list[Pool]) -> tuple[str, str]:
    """Return the reason for the nearest pool, by the largest excess of any resource, and a fix."""

    def excess(pool: Pool) -> tuple[float, float, str]:
        usable = pool.usable
        over = [amount / usable[name] if usable.get(name) else 1e9 for name, amount in shape.requests]
        return (max(over), sum(over), pool.name)

    best = min(pools, key=excess)
    usable = best.usable
    parts = [(name, amount) for name, amount in shape.requests if amount > usable.get(name, 0)]
    fixes = [_floor_text(name, usable[name]) for name, _ in parts if usable.get(name)]
    machine = best.machine_type or best.name
    if not parts:
        return f"max_nodes of {best.name} is 0", f"raise max_nodes of {best.name}"
    needs = " and ".join(amount_text(name, amount) for name, amount in parts)
    offers = " and ".join(amount_text(name, usable.get(name, 0)).split(" ")[0] for name, _ in parts)
    fix = f"request {' and '.join(fixes)}" if len(fixes) == len(parts) else "add a pool that has it"
    return f"needs {needs}; {machine} offers {offers} after system pods", fix


_CONDITIONS = {"node.kubernetes.io/unschedulable": "cordoned", "node.kubernetes.io/not-ready": "not ready"}


def _floor_text(resource: str, amount: int) -> str:
    if resource == "cpu":
        return f"{cores_text(amount // 10 * 10)} CPU" if amount >= 100 else f"{amount}m CPU"
    return f"{amount // MIB}Mi memory" if resource == "memory" else amount_text(resource, amount)


def _kept_out(cluster: Cluster, shape: Shape) -> tuple[str, str]:
    pools = cluster.pools
    for key, value in shape.selector:
        if not any(pool.labels.get(key) == value or pool.leaves_open(key) for pool in pools):
            values = sorted({pool.labels[key] for pool in pools if key in pool.labels})
            near = nearest(value, values)
            present = f"nodes have {', '.join(values[:5])}" if values else f"no node has the label {key}"
            return f"no pool has the label {key}={value}", (f'did you mean "{near}"? ' if near else "") + present
    matching = [
        node
        for node in cluster.classes
        if labels_match(
            dict(shape.selector), shape.affinity, node.labels, node.name, assumed=_open_labels(shape, pools[node.pool])
        )
    ]
    for node in sorted(matching, key=lambda node: (pools[node.pool].name, node.name)):
        where = f"node {node.name}" if node.is_live else pools[node.pool].name
        others = f" (and {len(matching) - 1} more)" if len(matching) > 1 else ""
        taint = untolerated_taint(shape.tolerations, node.taints)
        if taint is None and ports_conflict(shape.ports, node.ports):
            held = ", ".join(str(port.number) for port in sorted(shape.ports) if ports_conflict({port}, node.ports))
            return f"host port {held} is taken on {where}{others}", "request another port, or use other nodes"
        if taint and taint.key in _CONDITIONS:
            return f"{where} is {_CONDITIONS[taint.key]}{others}", f"see `kubectl describe node {node.name}`"
        if taint:
            return f"does not tolerate {taint} of {where}{others}", f"add a toleration of {taint.key}, or use assign_to"
    if not pools:
        return "the cluster has no node pools", "give a file that describes its node pools: --pools FILE"
    return "no pool matches both node selector and node affinity", "loosen one of them, or see symph plan --explain"


def why_left_over(cluster: Cluster, demand: int, missing: int) -> tuple[str, str]:
    """Return why some pods stay unplaced though each fits alone, and how many more nodes are needed."""
    count = cluster.demands[demand].count
    rooms = cluster.fits[demand]
    if demand in cluster.anti_affine[demand]:
        nodes = cluster.nodes_in(rooms)
        return f"needs {count} nodes, one per pod; there are {nodes}", "use fewer replicas, or more nodes"
    best = max(rooms, key=lambda node: (rooms[node], cluster.pool_of(node).name))
    pool = cluster.pool_of(best)
    more = -(-missing // rooms[best])
    names = sorted({cluster.pool_of(node).name for node in rooms})
    if len(names) == 1:
        full = f"{pool.name} is full at its maximum of {pool.max_nodes} node{'s' * (pool.max_nodes != 1)}"
    else:
        full = f"{', '.join(names[:3])}{' and others' * (len(names) > 3)} are full at their maximum of nodes"
    what = f"{count - missing} of {count} fit; {full}"
    if pool.is_multi_host:
        slices = -(-missing // max(1, pool.max_nodes))
        more_pools = f"add {slices} pool{'s' if slices > 1 else ''} like {pool.name}"
        return what, f"{more_pools} (a TPU slice never grows), or request less"
    return what, f"raise max_nodes of {pool.name} by {more}, or request less"
