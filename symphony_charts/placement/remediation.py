"""Find the cheapest number of further nodes that makes a group PROVEN; each number is tried, not guessed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf

from symphony_charts.placement.fit.devices import cluster_of, is_whole
from symphony_charts.placement.fit.proof import Proofs
from symphony_charts.placement.fit.supply import Cluster
from symphony_charts.placement.fit.verdicts import Group
from symphony_charts.placement.pools.pool import Pool
from symphony_charts.placement.prices import default_prices

# Limits on classes times demands, on groups and on nodes: beyond them a try costs more than the answer is worth.
_MOST_WORK, _MOST_GROUPS, _MOST_NODES = 4000, 8, 1024
# Beginnings of advice that an exact change replaces.
_INEXACT = ("raise ", "add ", "more nodes")


def with_remediations(groups: Sequence[Group], cluster: Cluster) -> Iterator[Group]:
    """Yield the groups; add to each PACKABLE or NO group the cheapest change that proves it, if one was found."""
    open_groups = [group for group in groups if group.verdict in ("PACKABLE", "NO")]
    if len(open_groups) > _MOST_GROUPS or len(cluster.classes) * len(cluster.demands) > _MOST_WORK:
        yield from groups
        return
    cheapest = {
        demand: min(_changes(cluster, demand), key=lambda change: change[0], default=(0.0, ""))[1]
        for demand in {group.demand for group in open_groups}
    }
    for group in groups:
        change = cheapest[group.demand] if group in open_groups else ""
        # The change is exact where these ways are not.
        ways = [way for way in group.next.split(", or ") if way and not way.startswith(_INEXACT)]
        others = f"; or {', or '.join(ways)}" if ways else ""
        yield replace(group, next=f"{change} it PROVEN{others}") if change else group


def _changes(cluster: Cluster, demand: int) -> Iterator[tuple[float, str]]:
    """Yield the cost of each change, infinite if it is unknown, and the change."""
    for number in cluster.pools_of(cluster.allowed[demand]):
        pool = cluster.pools[number]
        if pool.is_multi_host or pool.uncertainties:
            continue
        if number in cluster.pools_of(cluster.fits[demand]) or not pool.max_nodes:
            more = _fewest(cluster, demand, number)
            if more:
                each = default_prices().price(pool, spot=pool.is_spot)
                nodes, verb = ("nodes", "make") if more > 1 else ("node", "makes")
                text = f"{more} {nodes} more of {pool.name}{_cost_text(each, more, pool)} {verb}"
                yield inf if each is None else each * more, text


def _fewest(cluster: Cluster, demand: int, number: int) -> int:
    """Return the least number of additional nodes that proves the demand, or 0 if none up to the limit does."""

    def proves(more: int) -> bool:
        pools = list(cluster.pools)
        pools[number] = replace(pools[number], max_nodes=pools[number].max_nodes + more)
        after = cluster_of(pools, cluster.demands)
        return not after.unknown[demand] and Proofs(after).holds(demand) and is_whole(after, demand)

    high = 1
    while not proves(high):
        high *= 2
        if high > _MOST_NODES:
            return 0
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if proves(middle) else (middle, high)
    return high


def _cost_text(each: float | None, more: int, pool: Pool) -> str:
    if each is None:
        return " (no price)"
    spot = default_prices().price(pool, spot=True)
    cheaper = f", ${spot * more:.2f} as spot" if spot is not None and spot < each else ""
    return f" (${each * more:.2f}/h{cheaper})"
