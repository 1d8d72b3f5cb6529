"""Prove that every order of the scheduler places a demand, or that no placement exists.

kube-scheduler takes pods one by one in any order and spreads them, so a packing alone proves nothing. For a demand p,
`is_proven` lets an adversary place all other pods: if even the adversary cannot make every node too full for one more
p, then p always finds a node. `cannot_fit` looks for a set of demands that needs more than its nodes have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import gcd

from symphony_charts.placement.fit.supply import Cluster


def is_proven(cluster: Cluster, demand: int) -> bool:
    """Return True if no order and no scoring of the scheduler can leave a pod of `demand` pending.

    A node is closed to p in dimension d once the other pods use at least free - need + 1 of it (rounded up to a
    multiple of the greatest common divisor of all sizes). The total of the other pods limits how many nodes can be
    closed; over several dimensions the numbers add up. If no other demand can use these nodes, the count is exact.
    """
    rooms = cluster.fits[demand]
    total_nodes = cluster.nodes_in(rooms)
    if not total_nodes:
        return False
    pods = {
        number: other.count
        for number, other in enumerate(cluster.demands)
        if number != demand and other.count and cluster.may_use(number, rooms)
    }
    count = cluster.demands[demand].count
    if not pods:
        return sum(cluster.classes[node].count * room for node, room in rooms.items()) >= count
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
    """Return the maximum number of nodes that `pods` can close in one dimension, cheapest first."""
    sizes = {other: cluster.needs[other][dimension] for other in pods}
    common = gcd(*sizes.values())
    if not common:
        return 0
    total = sum(sizes[other] * number for other, number in pods.items())
    closed = 0
    prices = Counter[int]()
    for node in rooms:
        node_class = cluster.classes[node]
        prices[-(-(node_class.free[dimension] - need + 1) // common) * common] += node_class.count
    for price, count in sorted(prices.items()):
        number = min(count, total // price)
        closed += number
        total -= number * price
        if number < count:
            break
    return closed


def cannot_fit(cluster: Cluster) -> bool:
    """Return True if some set of demands certainly needs more than its nodes have; False proves nothing.

    For the nodes of each demand, all demands that can use no other nodes are added up: in each dimension, and for the
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
        if sum(cluster.demands[i].count for i in set(clique)) > cluster.nodes_in(nodes):
            return True
    return False
