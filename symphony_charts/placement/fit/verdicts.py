"""A verdict is one of four words for the pods of a group; uncertainties about pools bound how certain it may be."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from symphony_charts.placement.fit.supply import Cluster
from symphony_charts.placement.pools.pool import Pool, Pools, Uncertainty

__all__ = ["WORST", "Group", "Verdict", "with_uncertainties"]

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
