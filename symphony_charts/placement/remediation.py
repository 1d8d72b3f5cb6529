"""Find the cheapest change of the node pools that makes a group PROVEN; each change is tried, not guessed.

Changes are more nodes of a pool that the group may use, and larger machines in place of too small ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from symphony_charts.placement.allocatable import NodeSpec, allocatable
from symphony_charts.placement.catalog import Catalog, Machine
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


@dataclass(frozen=True, slots=True)
class _Change:
    text: str
    cost: float | None


def with_remediations(groups: Sequence[Group], cluster: Cluster, catalog: Catalog) -> Iterator[Group]:
    """Yield the groups; add to each PACKABLE or NO group the cheapest change that proves it, if one was found."""
    open_groups = [group for group in groups if group.verdict in ("PACKABLE", "NO")]
    is_worth = len(open_groups) <= _MOST_GROUPS and len(cluster.classes) * len(cluster.demands) <= _MOST_WORK
    found: dict[int, _Change | None] = {}
    for group in groups:
        if not is_worth or group.verdict not in ("PACKABLE", "NO"):
            yield group
            continue
        if group.demand not in found:
            changes = list(_changes(cluster, group.demand, catalog))
            found[group.demand] = min(changes, key=lambda change: (change.cost is None, change.cost or 0), default=None)
        change = found[group.demand]
        # The change is exact where these ways are not.
        ways = [way for way in group.next.split(", or ") if way and not way.startswith(_INEXACT)]
        others = f"; or {', or '.join(ways)}" if ways else ""
        yield group if change is None else replace(group, next=f"{change.text} it PROVEN{others}")


def _changes(cluster: Cluster, demand: int, catalog: Catalog) -> Iterator[_Change]:
    for number in sorted({cluster.classes[node].pool for node in cluster.allowed[demand]}):
        pool = cluster.pools[number]
        if pool.is_multi_host or pool.uncertainties:
            continue
        if any(cluster.classes[node].pool == number for node in cluster.fits[demand]) or not pool.max_nodes:
            more = _fewest(cluster, demand, number)
            if more:
                each = _price(pool)
                nodes, verb = ("nodes", "make") if more > 1 else ("node", "makes")
                text = f"{more} {nodes} more of {pool.name}{_cost(each, more, pool)} {verb}"
                yield _Change(text, None if each is None else each * more)
        elif not pool.nodes:
            yield from _larger(cluster, demand, number, catalog)


def _larger(cluster: Cluster, demand: int, number: int, catalog: Catalog) -> Iterator[_Change]:
    pool = cluster.pools[number]
    now = catalog.get(pool.machine_type)
    if now is None or pool.accuracy != "model":
        return
    size = (now.vcpu, now.memory_mib)
    larger = [m for m in catalog.machines.values() if _is_like(m, now) and (m.vcpu, m.memory_mib) > size]

    def cost(machine: Machine) -> tuple[object, ...]:
        each = default_prices().price(machine.name, pool.region, spot=pool.is_spot)
        return (each is None, each or 0.0, machine.vcpu, machine.memory_mib, machine.name)

    for machine in sorted(larger, key=cost):
        changed = _on_machine(pool, machine)
        usable = changed.usable
        if all(usable.get(name, 0) >= amount for name, amount in cluster.demands[demand].shape.requests) and _proves(
            cluster, demand, number, changed
        ):
            before, after = _price(pool), _price(changed)
            more = None if before is None or after is None else after - before
            text = f"{machine.name} in place of {now.name} in {pool.name}"
            shown = f" (${more:.2f}/h more a node)" if more is not None else ""
            yield _Change(f"{text}{shown} makes", more)
            return


def _is_like(machine: Machine, now: Machine) -> bool:
    same_devices = (machine.gpu, machine.gpus, machine.tpu, machine.chips) == (now.gpu, now.gpus, now.tpu, now.chips)
    return machine.family == now.family and machine.arch == now.arch and same_devices and not machine.local_ssds


def _on_machine(pool: Pool, machine: Machine) -> Pool:
    node = NodeSpec(vcpu=machine.vcpu, memory_mib=machine.memory_mib, machine_type=machine.name, arch=machine.arch)
    kept = {name: amount for name, amount in pool.allocatable.items() if name not in ("cpu", "memory")}
    return replace(
        pool,
        machine_type=machine.name,
        vcpu=machine.vcpu,
        memory_mib=machine.memory_mib,
        allocatable={**allocatable(node), **kept},
        labels={**pool.labels, "node.kubernetes.io/instance-type": machine.name},
    )


def _proves(cluster: Cluster, demand: int, number: int, changed: Pool) -> bool:
    """Return True if the group is PROVEN after pool `number` is `changed`, with all other groups."""
    pools = [changed if index == number else pool for index, pool in enumerate(cluster.pools)]
    after = cluster_of(pools, cluster.demands)
    return not after.unknown[demand] and Proofs(after).holds(demand) and is_whole(after, demand)


def _fewest(cluster: Cluster, demand: int, number: int) -> int:
    """Return the least number of additional nodes that proves the demand, or 0 if none up to the limit does."""
    pool = cluster.pools[number]

    def proves(more: int) -> bool:
        return _proves(cluster, demand, number, replace(pool, max_nodes=pool.max_nodes + more))

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


def _price(pool: Pool) -> float | None:
    return default_prices().price_of(pool, spot=pool.is_spot)


def _cost(each: float | None, more: int, pool: Pool) -> str:
    if each is None:
        return " (no price)"
    spot = default_prices().price_of(pool, spot=True)
    cheaper = f", ${spot * more:.2f} as spot" if spot is not None and spot < each else ""
    return f" (${each * more:.2f}/h{cheaper})"
