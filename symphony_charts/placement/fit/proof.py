"""Prove that every order of the scheduler places a demand, or that no placement exists.

kube-scheduler takes pods one by one in any order and spreads them, so a packing alone proves nothing. For a demand p,
an adversary places all other pods: if it cannot make every node too full for one more p, then p always finds a node.
`Proofs.holds` tries bounds on what the adversary can do, and for small cases everything that it can do. `cannot_fit`
looks for a set of demands that needs more than its nodes have.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import gcd

from symphony_charts.placement.fit.supply import Cluster, Vector

# Beyond these numbers of other demands, of nodes and of steps, the closer bound and the search take too long.
_MOST_DEMANDS, _MOST_NODES, _MOST_STEPS = 128, 64, 6000
# The number of sets of nodes that `cannot_fit` tries.
_MOST_SETS = 256


@dataclass(frozen=True, slots=True)
class _Rivals:
    """The demands that may use some nodes, with the number, the sums and the common divisors of their pods."""

    demands: list[int]
    pods: int
    totals: Vector
    divisors: Vector


class Proofs:
    """Proofs on one cluster; what demands with the same nodes have in common is computed once."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._by_reach: dict[frozenset[int], list[int]] = defaultdict(list)
        self._users: dict[int, list[frozenset[int]]] = defaultdict(list)
        self._rivals: dict[frozenset[int], _Rivals] = {}
        self._free: dict[frozenset[int], list[Counter[int]]] = {}
        self._steps_left = 10 * _MOST_STEPS
        for number, demand in enumerate(cluster.demands):
            if demand.count:
                reach = frozenset((*cluster.fits[number], *cluster.maybe[number]))
                self._by_reach[reach].append(number)
        for reach in self._by_reach:
            for node in reach:
                self._users[node].append(reach)

    def holds(self, demand: int) -> bool:
        """Return True if no order and no scoring of the scheduler can leave a pod of `demand` pending."""
        cluster = self._cluster
        rooms, count = cluster.fits[demand], cluster.demands[demand].count
        total_nodes, nodes = cluster.nodes_in(rooms), frozenset(rooms)
        if not total_nodes:
            return False
        rivals = self._rivals_on(nodes)
        if rivals.pods == count:
            return sum(cluster.classes[node].count * room for node, room in rooms.items()) >= count
        # A node that is closed holds a pod.
        if rivals.pods - 1 < total_nodes or self._closable(demand, nodes, rivals) < total_nodes:
            return True
        if len(rivals.demands) > _MOST_DEMANDS:
            return False
        others = {other: cluster.demands[other].count - (other == demand) for other in rivals.demands}
        steps = min(_MOST_STEPS, self._steps_left) if total_nodes <= _MOST_NODES else 0
        adversary = _Adversary(cluster, demand, {other: number for other, number in others.items() if number}, steps)
        can_close = adversary.can_close_all()
        self._steps_left -= steps - max(0, adversary.steps_left)
        return not can_close

    def _rivals_on(self, nodes: frozenset[int]) -> _Rivals:
        if nodes in self._rivals:
            return self._rivals[nodes]
        cluster = self._cluster
        few = {reach: None for node in nodes for reach in self._users[node]} if len(nodes) <= 8 else self._by_reach
        found = [other for reach in few if not reach.isdisjoint(nodes) for other in self._by_reach[reach]]
        totals, divisors = [0] * len(cluster.dimensions), [0] * len(cluster.dimensions)
        for other in found:
            count = cluster.demands[other].count
            for dimension, size in enumerate(cluster.needs[other]):
                totals[dimension] += size * count
                divisors[dimension] = gcd(divisors[dimension], size)
        pods = sum(cluster.demands[other].count for other in found)
        self._rivals[nodes] = _Rivals(sorted(found), pods, tuple(totals), tuple(divisors))
        return self._rivals[nodes]

    def _closable(self, demand: int, nodes: frozenset[int], rivals: _Rivals) -> int:
        """Return the number of nodes that the rivals could close if their pods were fluid.

        A node is closed in a dimension once they use at least free - need + 1 of it, rounded up to a multiple of the
        common divisor of all sizes. Over several dimensions the numbers add up.
        """
        cluster = self._cluster
        if nodes not in self._free:
            self._free[nodes] = [Counter() for _ in cluster.dimensions]
            for node in nodes:
                for dimension, free in enumerate(cluster.classes[node].free):
                    self._free[nodes][dimension][free] += cluster.classes[node].count
        apart = cluster.anti_affine[demand]
        closed = sum(cluster.demands[other].count for other in rivals.demands if other in apart) if apart else 0
        for dimension, need in enumerate(cluster.needs[demand]):
            divisor = rivals.divisors[dimension]
            if not need or not divisor:
                continue
            total = rivals.totals[dimension] - need
            for free, count in sorted(self._free[nodes][dimension].items()):
                price = -(-(free - need + 1) // divisor) * divisor
                number = min(count, total // price)
                closed += number
                total -= number * price
                if number < count:
                    break
        return closed


@dataclass(slots=True)
class _Adversary:
    """A rival that places the pods `others` (demand -> number) to leave no room for one pod of `demand`."""

    cluster: Cluster
    demand: int
    others: dict[int, int]
    steps_left: int

    def can_close_all(self) -> bool:
        """Return True if some placement closes every node; also if there is no time to try all placements."""
        patterns = {node: list(self._patterns(node)) for node in self.cluster.fits[self.demand] if self.steps_left > 0}
        if self.steps_left <= 0:
            return True
        order = sorted(patterns, key=lambda node: (len(patterns[node]), node))
        return self._cover(
            [(patterns[node], self.cluster.classes[node].count) for node in order], 0, 0, 0, self.others, set()
        )

    def _patterns(self, node: int) -> Iterator[dict[int, int]]:
        """Yield all sets of pods that close one node of a class and of which the last pod is needed for it."""
        cluster = self.cluster
        users = [other for other in self.others if cluster.may_use(other, (node,))]
        need, apart = cluster.needs[self.demand], cluster.anti_affine[self.demand]

        def extended(first: int, free: Vector, held: dict[int, int]) -> Iterator[dict[int, int]]:
            self.steps_left -= 1
            if self.steps_left <= 0:
                return
            if any(have < wanted for have, wanted in zip(free, need, strict=True)) or not apart.isdisjoint(held):
                yield held
                return
            for index in range(first, len(users)):
                other = users[index]
                rest = tuple(have - wanted for have, wanted in zip(free, cluster.needs[other], strict=True))
                is_used_up = held.get(other, 0) == self.others[other]
                if min(rest) >= 0 and not is_used_up and cluster.anti_affine[other].isdisjoint(held):
                    yield from extended(index, rest, {**held, other: held.get(other, 0) + 1})

        return extended(0, cluster.classes[node].free, {})

    def _cover(
        self,
        classes: Sequence[tuple[list[dict[int, int]], int]],
        index: int,
        closed: int,
        first: int,
        left: Mapping[int, int],
        dead: set[tuple[object, ...]],
    ) -> bool:
        """Return True if the pods `left` can close all nodes from node number `closed` of class `index` on."""
        while index < len(classes) and closed == classes[index][1]:
            index, closed, first = index + 1, 0, 0
        if index == len(classes):
            return True
        missing = sum(count for _, count in classes[index:]) - closed
        state = (index, closed, first, *left.values())
        self.steps_left -= 1
        if self.steps_left <= 0:
            return True
        if missing > sum(left.values()) or state in dead:
            return False
        dead.add(state)
        patterns = classes[index][0]
        for number in range(first, len(patterns)):
            rest = {other: count - patterns[number].get(other, 0) for other, count in left.items()}
            if min(rest.values()) >= 0 and self._cover(classes, index, closed + 1, number, rest, dead):
                return True
        return False


def cannot_fit(cluster: Cluster) -> bool:
    """Return True if some set of demands certainly needs more than its nodes have; False proves nothing.

    For the nodes of each demand, all demands that can use no other nodes are added up: in each dimension, and for the
    pods of at least each size, of which a node holds a whole number.
    """
    if cluster.splits_zones:
        return False
    by_nodes: dict[frozenset[int], list[int]] = defaultdict(list)
    for number, demand in enumerate(cluster.demands):
        if demand.count and cluster.fits[number]:
            by_nodes[frozenset(cluster.fits[number])].append(number)
    everything = frozenset(node for nodes in by_nodes for node in nodes)
    for nodes in dict.fromkeys((everything, *islice(by_nodes, _MOST_SETS))):
        bound = [number for inner, numbers in by_nodes.items() if inner <= nodes for number in numbers]
        if bound and _is_overfull(cluster, nodes, bound):
            return True
    return False


def _is_overfull(cluster: Cluster, nodes: frozenset[int], demands: list[int]) -> bool:
    for dimension in range(len(cluster.dimensions)):
        pods = Counter[int]()
        for number in demands:
            pods[cluster.needs[number][dimension]] += cluster.demands[number].count
        del pods[0]
        free = Counter[int]()
        for node in nodes:
            free[cluster.classes[node].free[dimension]] += cluster.classes[node].count
        common = gcd(*pods)
        asked = sum(size * count for size, count in pods.items())
        if pods and asked > sum(count * (have // common * common) for have, count in free.items()):
            return True
        largest = 0
        for size in sorted(pods, reverse=True):
            largest += pods[size]
            if largest > sum(count * (have // size) for have, count in free.items()):
                return True
    return any(
        number in cluster.anti_affine[number] and cluster.demands[number].count > cluster.nodes_in(nodes)
        for number in demands
    )
