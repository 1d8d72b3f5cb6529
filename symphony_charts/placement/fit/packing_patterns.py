"""A second packer saves nodes: it fills one node with shapes that complement each other, then repeats it.

Each node starts with the largest pod left and takes, one by one, the shape whose needs lie most along what is free
(the dot product, weighted by how scarce a resource is overall). The finished mixture is opened as often as the counts
allow, which uses one shape up; so there are at most as many mixtures as shapes, and a few partial ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from symphony_charts.placement.fit.packing import Filled, Packing, node_costs
from symphony_charts.placement.fit.supply import Cluster, Vector

__all__ = ["is_worth_trying", "pack_patterns", "worth"]

# Beyond these sizes the gain is small and the time is not.
_MOST_DEMANDS, _MOST_CLASSES = 64, 64


def is_worth_trying(cluster: Cluster) -> bool:
    """Return True if the cluster is small enough in shapes and kinds of nodes; the number of pods does not matter."""
    return 1 < len(cluster.demands) <= _MOST_DEMANDS and len(cluster.classes) <= _MOST_CLASSES


def worth(cluster: Cluster, packing: Packing) -> tuple[int, float, int]:
    """Return the cost of a packing, for comparison: pods left over, cost of its nodes, nodes."""
    costs = node_costs(cluster)
    left = sum(number for demand, number in packing.missing.items() if cluster.fits[demand])
    price = sum(costs[filled.node] * filled.count for filled in packing.nodes)
    return left, round(price, 3), sum(filled.count for filled in packing.nodes)


def pack_patterns(cluster: Cluster, order: Sequence[int]) -> Packing:
    """Pack all demands by mixtures; `order` names the largest first."""
    left = [demand.count for demand in cluster.demands]
    unopened = [node.count for node in cluster.classes]
    costs = node_costs(cluster)
    packing = Packing()
    for lead in order:
        while left[lead]:
            choices = [node for node in cluster.fits[lead] if unopened[node]]
            if not choices:
                break
            node = min(
                choices, key=lambda n: (costs[n] * -(-left[lead] // cluster.fits[lead][n]), _name(cluster, n), n)
            )
            mixture, free = _mixture(cluster, node, lead, left)
            number = min(unopened[node], *(left[demand] // pods for demand, pods in mixture.items()))
            unopened[node] -= number
            for demand, pods in mixture.items():
                left[demand] -= pods * number
            packing.nodes.append(Filled(node, tuple(sorted(mixture.items())), free, number))
    packing.missing = {demand: number for demand, number in enumerate(left) if number}
    return packing


def _name(cluster: Cluster, node: int) -> str:
    return cluster.pools[cluster.classes[node].pool].name


def _mixture(cluster: Cluster, node: int, lead: int, left: Sequence[int]) -> tuple[dict[int, int], Vector]:
    whole = cluster.classes[node].free
    weights = _weights(cluster, whole, left)
    mixture = {lead: 1}
    free = tuple(have - need for have, need in zip(whole, cluster.needs[lead], strict=True))
    open_to = [d for d in range(len(left)) if left[d] and node in cluster.fits[d]]
    while True:
        open_to = [
            d
            for d in open_to
            if left[d] > mixture.get(d, 0)
            and all(have >= need for have, need in zip(free, cluster.needs[d], strict=True))
            and not any(other in cluster.anti_affine[d] for other in mixture)
        ]
        if not open_to:
            return mixture, free
        along = [weight * have for weight, have in zip(weights, free, strict=True)]
        best = max(open_to, key=lambda d: (sum(a * n for a, n in zip(along, cluster.needs[d], strict=True)), -d))
        mixture[best] = mixture.get(best, 0) + 1
        free = tuple(have - need for have, need in zip(free, cluster.needs[best], strict=True))


def _weights(cluster: Cluster, whole: Vector, left: Sequence[int]) -> list[float]:
    """Return how scarce each resource is: the rest to place, in nodes of this size, per unit squared."""
    asked = [sum(need[d] * n for need, n in zip(cluster.needs, left, strict=True)) for d in range(len(whole))]
    return [ask / have**3 if have else 0.0 for ask, have in zip(asked, whole, strict=True)]
