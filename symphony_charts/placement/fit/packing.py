"""Pack demands onto nodes: greedy orders, and an exact search for small cases.

Demands are taken scarcest first; each fills open nodes by whole multiples, then opens new ones where the rest costs
least. Integers only, ties broken by name, so the same input gives the same packing.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from symphony_charts.placement.fit.supply import Cluster, Vector
from symphony_charts.placement.pools.pool import Pool

Contents = tuple[tuple[int, int], ...]  # (demand, pods of it), sorted

# Rough value of a resource in millionths of a dollar per hour, to compare machines: cpu by millicore, memory by byte.
_WORTH = {"cpu": 32, "memory": 4 / (1 << 20), "ephemeral-storage": 0.0, "pods": 0.0}
_DEVICE_WORTH = 1_000_000


@dataclass(frozen=True, slots=True)
class Filled:
    """`count` nodes of class `node`, each with the same pods; `free` is the unused rest."""

    node: int
    contents: Contents
    free: Vector
    count: int


@dataclass(slots=True)
class Packing:
    """The nodes with their pods; `missing` maps each incompletely placed demand to the number of pods left over."""

    nodes: list[Filled] = field(default_factory=list)
    missing: dict[int, int] = field(default_factory=dict)


_Node = tuple[int, Vector, Contents]  # class, free resources, contents
# The most open nodes that are compared for one demand.
_MOST_OPEN, _MOST_SEEN = 32, 96


@dataclass(slots=True)
class _State:
    """The number of equal open nodes, and these nodes in the order of what is free in the dimension `main`.

    `unopened_groups` are the classes that still have nodes, those of equal cost and free resources together.
    """

    cluster: Cluster
    unopened: list[int]
    costs: list[float]
    ranks: list[tuple[str, int]]
    unopened_groups: list[list[int]]
    main: int
    open_nodes: dict[_Node, int] = field(default_factory=dict)
    by_free: list[tuple[int, _Node]] = field(default_factory=list)

    def add(self, node: _Node, count: int) -> None:
        before = self.open_nodes.get(node, 0)
        entry = node[1][self.main], node
        if not before:
            insort(self.by_free, entry)
        if before + count:
            self.open_nodes[node] = before + count
        else:
            del self.open_nodes[node]
            del self.by_free[bisect_left(self.by_free, entry)]


def orders(cluster: Cluster) -> list[list[int]]:
    """Return the orders of demands to try, best first."""
    used = {node for rooms in cluster.fits for node in rooms}
    # The largest usable node in each dimension, against which requests are compared.
    totals = [max((cluster.classes[n].free[d] for n in used), default=0) for d in range(len(cluster.dimensions))]

    def share(demand: int) -> float:
        return max((need / totals[d] for d, need in enumerate(cluster.needs[demand]) if totals[d]), default=0.0)

    def scarcity(demand: int) -> int:
        return -sum(1 for d, n in enumerate(cluster.needs[demand]) if n and "/" in cluster.dimensions[d])

    everyone = range(len(cluster.demands))
    keys: list[Callable[[int], tuple[float, ...]]] = [
        lambda i: (scarcity(i), len(cluster.fits[i]) > 1, -share(i), i),
        lambda i: (scarcity(i), len(cluster.fits[i]), -share(i), i),
        lambda i: (-share(i), i),
        lambda i: (-share(i) * cluster.demands[i].count, i),
        lambda i: (-sum(n / totals[d] for d, n in enumerate(cluster.needs[i]) if totals[d]), i),
    ]
    return [sorted(everyone, key=key) for key in keys]


def pack(cluster: Cluster, order: Sequence[int]) -> Packing:
    """Pack the demands in `order`; pods that do not fit are left over."""
    costs = node_costs(cluster)
    ranks = [(cluster.pools[node.pool].name, number) for number, node in enumerate(cluster.classes)]
    groups: dict[object, list[int]] = defaultdict(list)
    for number in sorted((n for n, node in enumerate(cluster.classes) if node.count), key=ranks.__getitem__):
        groups[costs[number], cluster.classes[number].free].append(number)
    state = _State(
        cluster=cluster,
        unopened=[node.count for node in cluster.classes],
        costs=costs,
        ranks=ranks,
        unopened_groups=list(groups.values()),
        main=cluster.dimensions.index("cpu") if "cpu" in cluster.dimensions else 0,
    )
    packing = Packing()
    for demand in order:
        left = _fill_open(state, demand, cluster.demands[demand].count)
        left = _open_new(state, demand, left)
        if left:
            packing.missing[demand] = left
    for node, free, contents in sorted(state.open_nodes, key=lambda found: (found[0], found[2], found[1])):
        packing.nodes.append(Filled(node, contents, free, state.open_nodes[node, free, contents]))
    return packing


def node_costs(cluster: Cluster) -> list[float]:
    """Return the cost of one node of each class; live nodes cost nothing extra, so they come first."""

    def cost(pool: Pool) -> float:
        return sum(_WORTH.get(name, _DEVICE_WORTH) * amount for name, amount in pool.usable.items())

    return [0.0 if node.is_live else cost(cluster.pools[node.pool]) for node in cluster.classes]


def room_for(free: Vector, need: Vector) -> int:
    """Return the number of pods of `need` that fit in `free`."""
    room = -1
    for have, wanted in zip(free, need, strict=True):
        if have < wanted:
            return 0
        if wanted and (room < 0 or have // wanted < room):
            room = have // wanted
    return max(room, 0)


def _fill_open(state: _State, demand: int, left: int) -> int:
    """Put pods on nodes that already have some, fullest node first; return the number left."""
    while left:
        fitting = sorted(_fitting(state, demand))
        for _, node, room in fitting:
            full = min(state.open_nodes[node], left // room)
            if full:
                _move(state, node, full, demand, room)
                left -= full * room
            elif left:
                _move(state, node, 1, demand, left)
                left = 0
        if len(fitting) < _MOST_OPEN:
            break
    return left


def _fitting(state: _State, demand: int) -> Iterator[tuple[float, _Node, int]]:
    """Yield (slack, node, number of pods that fit) of open nodes, those with least free in the main dimension first."""
    cluster = state.cluster
    need, anti_affine, rooms = cluster.needs[demand], cluster.anti_affine[demand], cluster.fits[demand]
    found = 0
    first = bisect_left(state.by_free, (need[state.main],))
    for _, node in state.by_free[first : first + _MOST_SEEN]:
        where, free, contents = node
        if where not in rooms or (anti_affine and any(other in anti_affine for other, _ in contents)):
            continue
        room = room_for(free, need)
        if room:
            room = 1 if demand in anti_affine else room
            slack = min(1 - wanted * room / have for have, wanted in zip(free, need, strict=True) if wanted)
            yield slack, node, room
            found += 1
            if found == _MOST_OPEN:
                return


def _open_new(state: _State, demand: int, left: int) -> int:
    """Open nodes where the rest costs least: full ones first, then a partly filled one; return the number left."""
    cluster, rooms = state.cluster, state.cluster.fits[demand]
    while left and rooms:
        # Nodes of one group differ in their names alone.
        firsts = (next((node for node in group if node in rooms), None) for group in state.unopened_groups)
        choices = [node for node in firsts if node is not None]
        if not choices:
            break
        costs = {node: (state.costs[node] * -(-left // rooms[node]), state.ranks[node]) for node in choices}
        best = min(costs, key=costs.__getitem__)
        full = min(state.unopened[best], left // rooms[best])
        nodes, pods = (full, rooms[best]) if full else (1, left)
        state.unopened[best] -= nodes
        if not state.unopened[best]:
            next(group for group in state.unopened_groups if best in group).remove(best)
        state.add((best, cluster.classes[best].free, ()), nodes)
        _move(state, (best, cluster.classes[best].free, ()), nodes, demand, pods)
        left -= nodes * pods
    return left


def _move(state: _State, node: _Node, count: int, demand: int, pods: int) -> None:
    """Put `pods` more pods of `demand` on each of `count` nodes that are equal to `node`."""
    where, free, contents = node
    need = state.cluster.needs[demand]
    rest = tuple(have - wanted * pods for have, wanted in zip(free, need, strict=True))
    held = dict(contents)
    held[demand] = held.get(demand, 0) + pods
    state.add(node, -count)
    state.add((where, rest, tuple(sorted(held.items()))), count)


def worth(cluster: Cluster, packing: Packing) -> tuple[int, int, float, int]:
    """Return the cost of a packing, for comparison: demands and pods left over, cost of its nodes, number of nodes."""
    costs = node_costs(cluster)
    left = sum(number for demand, number in packing.missing.items() if cluster.fits[demand])
    price = sum(costs[filled.node] * filled.count for filled in packing.nodes)
    return len(packing.missing), left, round(price, 3), sum(filled.count for filled in packing.nodes)


# Beyond these sizes a search takes too long.
_MOST_PODS, _MOST_NODES, _MOST_STEPS = 60, 60, 20_000


def search(cluster: Cluster) -> Packing | bool | None:
    """Return a packing of all pods; False if there certainly is none; None if the case is too large to decide.

    Pods are placed one by one, largest first; nodes in equal states count once, and failed states are remembered.
    """
    counts = [demand.count for demand in cluster.demands]
    used = [node for node in range(len(cluster.classes)) if any(node in rooms for rooms in cluster.fits)]
    needed = {node: min(cluster.classes[node].count, sum(counts)) for node in used}
    if sum(counts) > _MOST_PODS or sum(needed.values()) > _MOST_NODES or cluster.splits_zones:
        return None
    largest = [max((node.free[d] for node in cluster.classes), default=1) or 1 for d in range(len(cluster.dimensions))]

    def size(demand: int) -> tuple[float, int]:
        return (-max(n / largest[d] for d, n in enumerate(cluster.needs[demand])), demand)

    pods = [demand for demand in sorted(range(len(counts)), key=size) for _ in range(counts[demand])]
    start = tuple((node, cluster.classes[node].free, ()) for node in used for _ in range(needed[node]))
    # Depth first; each entry holds the states in which the first pods are placed.
    open_states: list[Iterator[tuple[_Node, ...]]] = [iter([start])]
    seen: set[tuple[_Node, ...]] = set()
    while open_states:
        nodes = next(open_states[-1], None)
        if nodes is None:
            open_states.pop()
        elif len(open_states) > len(pods):
            counted = Counter(node for node in nodes if node[2])
            return Packing([Filled(where, held, free, n) for (where, free, held), n in sorted(counted.items())])
        elif nodes not in seen:
            if len(seen) > _MOST_STEPS:
                return None
            seen.add(nodes)
            open_states.append(_moves(cluster, pods[len(open_states) - 1], nodes))
    return False


def _moves(cluster: Cluster, demand: int, nodes: tuple[_Node, ...]) -> Iterator[tuple[_Node, ...]]:
    """Yield the states in which one pod of `demand` is on one of the `nodes`, fullest node first."""
    need, rooms, anti_affine = cluster.needs[demand], cluster.fits[demand], cluster.anti_affine[demand]
    choices: dict[_Node, int] = {}
    for position, node in enumerate(nodes):
        where, free, contents = node
        if where in rooms and room_for(free, need) and not any(other in anti_affine for other, _ in contents):
            choices.setdefault(node, position)
    for node in sorted(choices, key=lambda item: (sum(item[1]), item)):
        where, free, contents = node
        held = dict(contents)
        held[demand] = held.get(demand, 0) + 1
        rest = tuple(have - wanted for have, wanted in zip(free, need, strict=True))
        after = list(nodes)
        after[choices[node]] = (where, rest, tuple(sorted(held.items())))
        yield tuple(sorted(after))
