"""An exhaustive search of small cases finds a packing that the fast one missed, or shows that there is none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from symphony_charts.placement.fit.packing import Contents, Filled, Packing
from symphony_charts.placement.fit.supply import Cluster, Vector

__all__ = ["search"]

_Node = tuple[int, Vector, Contents]  # class, what is free, who is there


@dataclass(slots=True)
class _Search:
    cluster: Cluster
    pods: list[int]
    steps_left: int
    dead: set[tuple[int, tuple[_Node, ...]]] = field(default_factory=set)


def search(cluster: Cluster, *, max_pods: int = 60, max_nodes: int = 60, steps: int = 20_000) -> Packing | bool | None:
    """Return a packing of all pods; False when there certainly is none; None when the case is too large to tell.

    Pods are placed one by one, largest first; nodes in equal states count once, and states that led nowhere are kept.
    """
    counts = [demand.count for demand in cluster.demands]
    used = [node for node in range(len(cluster.classes)) if any(node in rooms for rooms in cluster.fits)]
    needed = {node: min(cluster.classes[node].count, sum(counts)) for node in used}
    if sum(counts) > max_pods or sum(needed.values()) > max_nodes or cluster.splits_zones:
        return None
    largest = [max((node.free[d] for node in cluster.classes), default=1) or 1 for d in range(len(cluster.dimensions))]

    def size(demand: int) -> tuple[float, int]:
        return (-max(n / largest[d] for d, n in enumerate(cluster.needs[demand])), demand)

    order = sorted(range(len(counts)), key=size)
    run = _Search(cluster, [demand for demand in order for _ in range(counts[demand])], steps)
    start = tuple((node, cluster.classes[node].free, ()) for node in used for _ in range(needed[node]))
    end = _place(run, 0, start)
    if end is not None:
        return _as_packing(end)
    return None if run.steps_left <= 0 else False


def _place(run: _Search, index: int, nodes: tuple[_Node, ...]) -> tuple[_Node, ...] | None:
    if index == len(run.pods):
        return nodes
    if (index, nodes) in run.dead:
        return None
    for after in _moves(run, run.pods[index], nodes):
        run.steps_left -= 1
        if run.steps_left <= 0:
            return None
        packing = _place(run, index + 1, after)
        if packing is not None:
            return packing
    if run.steps_left > 0:
        run.dead.add((index, nodes))
    return None


def _moves(run: _Search, demand: int, nodes: tuple[_Node, ...]) -> Iterator[tuple[_Node, ...]]:
    need, rooms, anti_affine = run.cluster.needs[demand], run.cluster.fits[demand], run.cluster.anti_affine[demand]
    choices: dict[_Node, int] = {}
    for position, node in enumerate(nodes):
        where, free, contents = node
        if where not in rooms or node in choices:
            continue
        if any(have < wanted for have, wanted in zip(free, need, strict=True)):
            continue
        if anti_affine and any(other in anti_affine for other, _ in contents):
            continue
        choices[node] = position
    for node in sorted(choices, key=lambda item: (sum(item[1]), item)):
        where, free, contents = node
        held = dict(contents)
        held[demand] = held.get(demand, 0) + 1
        rest = tuple(have - wanted for have, wanted in zip(free, need, strict=True))
        after = list(nodes)
        after[choices[node]] = (where, rest, tuple(sorted(held.items())))
        yield tuple(sorted(after))


def _as_packing(nodes: tuple[_Node, ...]) -> Packing:
    counted: dict[_Node, int] = {}
    for node in nodes:
        if node[2]:
            counted[node] = counted.get(node, 0) + 1
    return Packing([Filled(where, held, free, n) for (where, free, held), n in sorted(counted.items())])
