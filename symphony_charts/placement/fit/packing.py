"""The packer fits all pods into nodes, group by group: its cost does not depend on how many pods a group has.

Demands are taken scarcest first; each fills open nodes by whole multiples, then opens new ones where all that is left
costs least. Integers only, ties broken by name, so the same input gives the same packing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from symphony_charts.placement.fit.supply import Cluster, Vector

__all__ = ["Filled", "Packing", "node_costs", "orders", "pack"]

Contents = tuple[tuple[int, int], ...]  # (demand, pods of it), sorted

# Rough worth of a resource in millionths of a dollar per hour, to compare machines: cpu by millicore, memory by byte.
_WORTH = {"cpu": 32, "memory": 4 / (1 << 20), "ephemeral-storage": 0.0, "pods": 0.0}
_DEVICE_WORTH = 1_000_000


@dataclass(frozen=True, slots=True)
class Filled:
    """`count` nodes of class `node`, each with the same pods; `free` is what they leave."""

    node: int
    contents: Contents
    free: Vector
    count: int


@dataclass(slots=True)
class Packing:
    """The nodes that hold the pods; `missing` maps each demand that is not placed in full to the number left over."""

    nodes: list[Filled] = field(default_factory=list)
    missing: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class _State:
    cluster: Cluster
    unopened: list[int]
    open_nodes: dict[int, dict[tuple[Vector, Contents], int]]
    costs: list[float]


def orders(cluster: Cluster) -> list[list[int]]:
    """Return the orders of demands that are worth trying, best first."""
    totals = _totals(cluster)

    def share(demand: int) -> float:
        return max((need / totals[d] for d, need in enumerate(cluster.needs[demand]) if totals[d]), default=0.0)

    def scarcity(demand: int) -> int:
        devices = sum(1 for d, n in enumerate(cluster.needs[demand]) if n and "/" in cluster.dimensions[d])
        return -devices

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
    state = _State(
        cluster=cluster,
        unopened=[node.count for node in cluster.classes],
        open_nodes={},
        costs=node_costs(cluster),
    )
    packing = Packing()
    for demand in order:
        left = _fill_open(state, demand, cluster.demands[demand].count)
        left = _open_new(state, demand, left)
        if left:
            packing.missing[demand] = left
    for node in sorted(state.open_nodes):
        for (free, contents), count in sorted(
            state.open_nodes[node].items(), key=lambda item: (item[0][1], item[0][0])
        ):
            packing.nodes.append(Filled(node, contents, free, count))
    return packing


def _totals(cluster: Cluster) -> list[int]:
    """Return the largest usable node in each dimension, against which requests are compared."""
    used = {node for rooms in cluster.fits for node in rooms}
    nodes = [cluster.classes[node].free for node in sorted(used)]
    return [max((free[d] for free in nodes), default=0) for d in range(len(cluster.dimensions))]


def node_costs(cluster: Cluster) -> list[float]:
    """Return the cost of one node of each class; live nodes cost nothing more, so they come first."""
    return [_cost(cluster, index) for index in range(len(cluster.classes))]


def _cost(cluster: Cluster, node: int) -> float:
    node_class = cluster.classes[node]
    if node_class.is_live:
        return 0.0
    offered = cluster.pools[node_class.pool].usable
    return sum(_WORTH.get(name, _DEVICE_WORTH) * amount for name, amount in offered.items())


def _room(free: Vector, need: Vector) -> int:
    room = -1
    for have, wanted in zip(free, need, strict=True):
        if wanted:
            count = have // wanted
            if count == 0:
                return 0
            if room < 0 or count < room:
                room = count
    return max(room, 0)


def _fill_open(state: _State, demand: int, left: int) -> int:
    """Put pods on nodes that already hold some, fullest node first; return the number left."""
    if not left:
        return 0
    need, anti_affine = state.cluster.needs[demand], state.cluster.anti_affine[demand]
    fitting = []
    for node in state.cluster.fits[demand]:
        for (free, contents), count in state.open_nodes.get(node, {}).items():
            if anti_affine and any(other in anti_affine for other, _ in contents):
                continue
            room = _room(free, need)
            if room:
                room = 1 if demand in anti_affine else room
                fitting.append((_slack(free, need, room), node, free, contents, room, count))
    for _, node, free, contents, room, count in sorted(fitting):
        if not left:
            break
        full = min(count, left // room)
        if full:
            _move(state, node, (free, contents), full, demand, room)
            left -= full * room
        if left and full < count:
            part = min(left, room)
            _move(state, node, (free, contents), 1, demand, part)
            left -= part
    return left


def _slack(free: Vector, need: Vector, room: int) -> float:
    return min(1 - wanted * room / have for have, wanted in zip(free, need, strict=True) if wanted)


def _open_new(state: _State, demand: int, left: int) -> int:
    """Open nodes where the rest costs least: whole ones first, then one that is filled in part."""
    cluster, rooms = state.cluster, state.cluster.fits[demand]
    choices = [node for node in rooms if state.unopened[node]]
    while left and choices:
        best = min(choices, key=lambda node: _rest_cost(state, node, left, rooms[node]))
        room = rooms[best]
        key = (cluster.classes[best].free, ())
        full = min(state.unopened[best], left // room)
        state.open_nodes.setdefault(best, {})
        if full:
            _open(state, best, key, full, demand, room)
            left -= full * room
        elif left:
            _open(state, best, key, 1, demand, min(left, room))
            left -= min(left, room)
        choices = [node for node in choices if state.unopened[node]]
    return left


def _rest_cost(state: _State, node: int, left: int, room: int) -> tuple[float, str, int]:
    """Return the cost of placing the rest on nodes of this class, as if there were enough of them."""
    pool = state.cluster.pools[state.cluster.classes[node].pool].name
    return (state.costs[node] * -(-left // room), pool, node)


def _open(state: _State, node: int, key: tuple[Vector, Contents], count: int, demand: int, pods: int) -> None:
    state.unopened[node] -= count
    state.open_nodes[node][key] = state.open_nodes[node].get(key, 0) + count
    _move(state, node, key, count, demand, pods)


def _move(state: _State, node: int, key: tuple[Vector, Contents], count: int, demand: int, pods: int) -> None:
    """Put `pods` more pods on `count` of the nodes that look like `key`."""
    here = state.open_nodes[node]
    here[key] -= count
    if not here[key]:
        del here[key]
    free, contents = key
    need = state.cluster.needs[demand]
    rest = tuple(have - wanted * pods for have, wanted in zip(free, need, strict=True))
    held = dict(contents)
    held[demand] = held.get(demand, 0) + pods
    after = (rest, tuple(sorted(held.items())))
    here[after] = here.get(after, 0) + count
