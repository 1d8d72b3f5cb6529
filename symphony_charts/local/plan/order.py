"""Who waits for whom: `connects` for the ports of their binder, `after` as it says."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

__all__ = ["components", "without_cycles"]

Node = TypeVar("Node", bound=Hashable)


def without_cycles(
    edges: Mapping[Node, Sequence[Node]], strict: Mapping[Node, Sequence[Node]]
) -> dict[Node, list[Node]]:
    """`edges` without those that lie on a cycle of `edges` and `strict` together.

    Processes that dial each other in a ring cannot wait for each other: they start at once and dial until it works.
    """
    both = {node: [*edges.get(node, ()), *strict.get(node, ())] for node in {*edges, *strict}}
    of = components(both)
    return {node: [other for other in targets if of[other] != of[node]] for node, targets in edges.items()}


def components(edges: Mapping[Node, Sequence[Node]]) -> dict[Node, int]:
    """The number of the strongly connected component of each node (Tarjan, without recursion)."""
    order: dict[Node, int] = {}
    low: dict[Node, int] = {}
    found: dict[Node, int] = {}
    pending: list[Node] = []
    for root in [*edges, *(target for targets in edges.values() for target in targets)]:
        if root in order:
            continue
        order[root] = low[root] = len(order)
        pending.append(root)
        work = [(root, iter(edges.get(root, ())))]
        while work:
            node, targets = work[-1]
            for target in targets:
                if target not in order:
                    order[target] = low[target] = len(order)
                    pending.append(target)
                    work.append((target, iter(edges.get(target, ()))))
                    break
                if target not in found:
                    low[node] = min(low[node], order[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == order[node]:
                    _close(node, pending, found)
    return found


def _close(node: Node, pending: list[Node], found: dict[Node, int]) -> None:
    number = max(found.values(), default=-1) + 1
    while True:
        member = pending.pop()
        found[member] = number
        if member == node:
            return
