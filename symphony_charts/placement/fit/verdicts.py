"""Prove what every order of the scheduler places, and bound verdicts by uncertainties about pools."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import Literal

from symphony_charts.placement.fit.supply import Cluster
from symphony_charts.placement.pools.pool import Pool, Pools, Uncertainty

# kube-scheduler takes pods one by one in any order and spreads them, so a packing alone proves nothing. For a demand
# p, `is_proven` lets an adversary place all other pods as it likes: if even then it cannot make every node too full
# for one more p, then p always finds a place. `cannot_fit` looks for a set of demands that needs more than its nodes
# have.


def is_proven(cluster: Cluster, demand: int) -> bool:
    """Return True if no order and no scoring of the scheduler can leave a pod of `demand` waiting.

    A node is closed to p in dimension d once the others use at least free - need + 1 of it (rounded up to a multiple
    of what all sizes have in common). With few others in all, only so many nodes can be closed; in more than one
    dimension the numbers add up. Where no other shape comes near these nodes the count is exact.
    """
    rooms = cluster.fits[demand]
    total_nodes = sum(cluster.classes[node].count for node in rooms)
    if not total_nodes:
        return False
    rivals = [
        other
        for other in range(len(cluster.demands))
        if other != demand and cluster.demands[other].count and cluster.may_use(other, rooms)
    ]
    count = cluster.demands[demand].count
    if not rivals:
        return sum(cluster.classes[node].count * room for node, room in rooms.items()) >= count
    pods = {other: cluster.demands[other].count for other in rivals}
    if count > 1:
        pods[demand] = count - 1
    if sum(pods.values()) < total_nodes:
        return True  # a node that is closed holds one of them
    closed = sum(n for other, n in pods.items() if other in cluster.anti_affine[demand])
    for dimension, need in enumerate(cluster.needs[demand]):
        if need and closed < total_nodes:
            closed += _closable(cluster, rooms, dimension, need, pods)
    return closed < total_nodes


def _closable(cluster: Cluster, rooms: Iterable[int], dimension: int, need: int, pods: dict[int, int]) -> int:
    """Return the number of nodes that `pods` can close at most in one dimension, cheapest first."""
    sizes = {other: cluster.needs[other][dimension] for other in pods}
    common = gcd(*sizes.values())
    if not common:
        return 0
    total = sum(sizes[other] * number for other, number in pods.items())
    closed = 0
    prices: dict[int, int] = {}
    for node in rooms:
        node_class = cluster.classes[node]
        price = -(-(node_class.free[dimension] - need + 1) // common) * common
        prices[price] = prices.get(price, 0) + node_class.count
    for price, count in sorted(prices.items()):
        number = min(count, total // price)
        closed += number
        total -= number * price
        if number < count:
            break
    return closed


def cannot_fit(cluster: Cluster) -> bool:
    """Return True if some set of demands certainly needs more than the nodes it may use have; False says nothing.

    For the nodes of each demand, all demands that can use no others are added up: in each dimension, and for the
    pods of at least each size, of which a node holds a whole number.
    """
    if cluster.splits_zones:
        return False
    tried: set[frozenset[int]] = set()
    asking = [i for i, demand in enumerate(cluster.demands) if demand.count]
    for rooms in cluster.fits:
        nodes = frozenset(rooms)
        if nodes and nodes not in tried:
            tried.add(nodes)
            bound = [i for i in asking if cluster.fits[i] and cluster.fits[i].keys() <= nodes]
            if _is_overfull(cluster, nodes, bound):
                return True
    everything = frozenset(node for rooms in cluster.fits for node in rooms)
    return everything not in tried and _is_overfull(cluster, everything, [i for i in asking if cluster.fits[i]])


def _is_overfull(cluster: Cluster, nodes: frozenset[int], demands: list[int]) -> bool:
    classes = [cluster.classes[node] for node in sorted(nodes)]
    for dimension in range(len(cluster.dimensions)):
        sizes = {i: cluster.needs[i][dimension] for i in demands if cluster.needs[i][dimension]}
        if not sizes:
            continue
        common = gcd(*sizes.values())
        asked = sum(size * cluster.demands[i].count for i, size in sizes.items())
        if asked > sum(node.count * (node.free[dimension] // common * common) for node in classes):
            return True
        for least in sorted(set(sizes.values())):
            pods = sum(cluster.demands[i].count for i, size in sizes.items() if size >= least)
            if pods > sum(node.count * (node.free[dimension] // least) for node in classes):
                return True
    return _are_anti_affine_too_many(cluster, nodes, demands)


def _are_anti_affine_too_many(cluster: Cluster, nodes: frozenset[int], demands: list[int]) -> bool:
    for demand in demands:
        if demand not in cluster.anti_affine[demand]:
            continue
        clique = [demand]
        for other in sorted(cluster.anti_affine[demand] & set(demands)):
            if other in cluster.anti_affine[other] and all(other in cluster.anti_affine[member] for member in clique):
                clique.append(other)
        clique = sorted(set(clique))
        if sum(cluster.demands[i].count for i in clique) > sum(cluster.classes[node].count for node in nodes):
            return True
    return False


Verdict = Literal["PROVEN", "PACKABLE", "UNKNOWN", "NO"]
WORST: tuple[Verdict, ...] = ("NO", "UNKNOWN", "PACKABLE", "PROVEN")


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The verdict on the pods of one group (or lone process); `why` and `next` as in error messages."""

    name: str
    count: int
    verdict: Verdict
    why: str
    next: str = ""
    demand: int


Judge = Callable[[Callable[[Cluster], Cluster]], list[Group]]


def with_uncertainties(cluster: Cluster, pools: Pools, groups: Sequence[Group], judge: Judge) -> Iterator[Group]:
    """Yield the verdicts that hold whatever is behind the uncertainties about pools.

    PROVEN and PACKABLE stay if pools without uncertainty, or without one that may close a node, are enough; `judge`
    decides that for a part of the cluster. A NO stays unless there may be more nodes than are counted.
    """
    if not pools.autoscaled and not any(pool.uncertainties for pool in cluster.pools):
        yield from groups
        return
    certain = _verdicts(judge(lambda part: _without(part, ("PACKABLE", "UNKNOWN"))))
    likely = _verdicts(judge(lambda part: _without(part, ("UNKNOWN",))))
    for group in groups:
        best, next_best = certain[group.demand, group.name], likely[group.demand, group.name]
        if group.verdict == "NO":
            growing = next(
                (uncertainty.text for _, uncertainty in _uncertainties(cluster, group.demand) if uncertainty.may_grow),
                next(iter(pools.autoscaled), ""),
            )
            yield replace(group, verdict="UNKNOWN", why=f"{group.why}; but {growing}") if growing else group
        elif group.verdict == "PROVEN" and best != "PROVEN":
            weight: Verdict = "PACKABLE" if next_best in ("PROVEN", "PACKABLE") else "UNKNOWN"
            yield _bounded(cluster, group, weight)
        elif group.verdict == "PACKABLE" and next_best not in ("PROVEN", "PACKABLE"):
            yield _bounded(cluster, group, "UNKNOWN")
        else:
            yield group


def _verdicts(groups: Iterable[Group]) -> dict[tuple[int, str], Verdict]:
    return {(group.demand, group.name): group.verdict for group in groups}


def _bounded(cluster: Cluster, group: Group, verdict: Verdict) -> Group:
    weight = "UNKNOWN" if verdict == "UNKNOWN" else "PACKABLE"
    uncertainties = [(pool, uncertainty) for pool, uncertainty in _uncertainties(cluster, group.demand)]
    pool, uncertainty = next((pair for pair in uncertainties if pair[1].weight == weight), uncertainties[0])
    others = sum(other.weight != "PROVEN" for _, other in uncertainties) - 1
    more = f", and {others} more" if others > 0 else ""
    hint = (
        "give what GKE itself says of the pool: `gcloud container node-pools list --format=json`, `kubectl get nodes`"
    )
    return replace(group, verdict=verdict, why=f"as far as {pool} is known: {uncertainty.text}{more}", next=hint)


def _uncertainties(cluster: Cluster, demand: int) -> Iterator[tuple[str, Uncertainty]]:
    numbers = sorted({cluster.classes[node].pool for node in cluster.fits[demand]})
    for number in numbers or range(len(cluster.pools)):
        pool = cluster.pools[number]
        yield from (
            (pool.name, uncertainty) for uncertainty in pool.uncertainties if _concerns(cluster, pool, uncertainty)
        )


def _concerns(cluster: Cluster, pool: Pool, uncertainty: Uncertainty) -> bool:
    if not uncertainty.label:
        return True
    shapes = [demand.shape for demand in cluster.demands]
    asked = {key for shape in shapes for key, _ in shape.selector}
    asked |= {requirement.key for shape in shapes for term in shape.affinity or () for requirement in term}
    return uncertainty.label in asked if uncertainty.label != "*" else not asked <= pool.labels.keys()


def _without(cluster: Cluster, weights: Collection[str]) -> Cluster:
    """Return the cluster without the pools that have uncertainties of these weights."""
    doubtful = {
        number
        for number, pool in enumerate(cluster.pools)
        if any(
            uncertainty.weight in weights and _concerns(cluster, pool, uncertainty)
            for uncertainty in pool.uncertainties
        )
    }
    if not doubtful:
        return cluster
    fits = tuple(
        {node: room for node, room in rooms.items() if cluster.classes[node].pool not in doubtful}
        for rooms in cluster.fits
    )
    return replace(cluster, fits=fits)
