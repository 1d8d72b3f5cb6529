"""Plan an experiment on node pools: its nodes, verdicts and reasons.

PROVEN: every order of the scheduler works. PACKABLE: a packing exists (shown), an unlucky order may miss it. NO: there
is none, with the smallest reason. UNKNOWN: none was found, and none excluded; this is not a refusal. Verdicts do not
cover stock-outs and quota.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property

from symphony_charts.errors import PlacementError
from symphony_charts.placement.assign_rules import Decision
from symphony_charts.placement.fit.demand import Demand, in_order, pending_demands
from symphony_charts.placement.fit.devices import cluster_of, is_whole
from symphony_charts.placement.fit.packing import Filled, Packing, orders, pack, search, worth
from symphony_charts.placement.fit.proof import Proofs, cannot_fit
from symphony_charts.placement.fit.supply import Cluster
from symphony_charts.placement.fit.system_load import empty_of, grown, system_demands, system_note
from symphony_charts.placement.fit.verdicts import WORST, Group, Verdict, why_left_over, why_not, with_uncertainties
from symphony_charts.placement.pools.pool import HOSTNAME, Pool, Pools
from symphony_charts.placement.prices import default_prices
from symphony_charts.placement.remediation import with_remediations

# Beyond this many demands times classes of nodes, trying other orders costs more than it gains.
_MOST_WORK = 4096
_WAIT_OR_GROW = "wait until they run, delete them, or raise max_nodes"
_ONE_NODE_MORE = "raise max_nodes, or give them a pool without taints"


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolUse:
    """The nodes that a plan takes of one pool: `used` and `offered` are sums over its non-empty nodes."""

    pool: Pool
    nodes: int
    used: dict[str, int]
    offered: dict[str, int]
    price: float | None
    filled: tuple[Filled, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A complete plan; groups by name, used pools in the order of the file."""

    experiment: str
    source: str
    groups: tuple[Group, ...]
    uses: tuple[PoolUse, ...]
    cluster: Cluster
    pools: Pools
    decisions: tuple[Decision, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def nodes(self) -> int:
        """The number of nodes with pods of the experiment."""
        return sum(use.nodes for use in self.uses)

    @property
    def fits(self) -> bool:
        return all(group.verdict != "NO" for group in self.groups)

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of all groups."""
        return min((group.verdict for group in self.groups), key=WORST.index, default="PROVEN")

    def refusal(self) -> PlacementError | None:
        """Return the error for the groups that cannot be scheduled, which stops a package or publish; else None."""
        lost = [group for group in self.groups if group.verdict == "NO"]
        if not lost:
            return None
        first = lost[0]
        what = f"{len(lost)} of {len(self.groups)} group{'s' * (len(self.groups) > 1)} cannot be scheduled"
        return PlacementError(f"{what}: {first.name} {first.why}", self.source, first.next)

    def summary(self) -> str:
        """Return a one-line summary: ``PROVEN on pools.yaml: 2 of n1-standard-8, 1 of v100``."""
        parts = [f"{use.nodes} of {use.pool.machine_type or use.pool.name}" for use in self.uses]
        shown = ", ".join(parts[:4]) + (f" and {len(parts) - 4} pools more" if len(parts) > 4 else "")
        return f"{self.verdict} on {self.source}" + (f": {shown}" if shown else "")


@dataclass(frozen=True)
class _Loads:
    """One cluster with more and more pods.

    `own` has the pods of the experiment, `system` also those of kube-system, `full` also the cluster's pending pods.
    """

    own: Cluster
    system: Cluster
    full: Cluster

    @cached_property
    def proofs(self) -> Proofs:
        return Proofs(self.full)

    @cached_property
    def rivals(self) -> tuple[tuple[str, str, Proofs], ...]:
        """The pods that may take the place of the experiment's, a way out, and the proofs that hold without them."""
        pending = ("pending pods of the cluster", _WAIT_OR_GROW, self.full, self.system)
        system = ("the pods of kube-system", _ONE_NODE_MORE, self.system, self.own)
        return tuple(
            (name, step, Proofs(without))
            for name, step, beside, without in (pending, system)
            if beside.demands != without.demands
        )


def plan_demands(demands: list[Demand], pools: Pools, *, gang: str = "none", experiment: str = "") -> Plan:
    """Return the plan of the `demands`, as one gang of the kind `gang` unless ``none``; `experiment` is the title.

    The same input gives the same plan, byte for byte; the order of processes changes nothing.
    """
    ordered, system, pending = in_order(demands), system_demands(pools), pending_demands(pools.pending)
    whole = cluster_of(pools.pools, [*ordered, *system, *pending])
    own = replace(whole, demands=(*ordered, *empty_of(system), *empty_of(pending)))
    packing, is_certain = _best_packing(own)
    system = grown(system, own, packing)
    loads = _Loads(
        own=own,
        system=replace(whole, demands=(*ordered, *system, *empty_of(pending))),
        full=replace(whole, demands=(*ordered, *system, *pending)),
    )
    judged = list(_groups(loads, packing, is_certain=is_certain))

    def groups_without(without: Callable[[Cluster], Cluster]) -> list[Group]:
        part = _Loads(without(loads.own), without(loads.system), without(loads.full))
        best, certain = _best_packing(part.own)
        return list(_groups(part, best, is_certain=certain))

    bounded = list(_with_unknown(loads.system, with_uncertainties(own, pools, judged, groups_without), pools))
    # The conductor, whose name is in parentheses, comes last.
    found = with_remediations(bounded, loads.full)
    groups = tuple(sorted(found, key=lambda group: (group.name.startswith("("), group.name)))
    return Plan(
        experiment=experiment,
        source=pools.source,
        groups=groups if gang == "none" else _as_gang(groups, gang),
        uses=tuple(_uses(own, packing)),
        cluster=own,
        pools=pools,
        notes=(
            *_notes(own, pools),
            *system_note(system),
            *_pending_note(loads.full, len(ordered), len(ordered) + len(system)),
        ),
    )


def _with_unknown(cluster: Cluster, groups: Iterable[Group], pools: Pools) -> Iterable[Group]:
    """Yield the groups; UNKNOWN if outside of the model, or if pods without rules may share their nodes.

    A NO remains if no node can hold a single pod, whatever the other pods are.
    """
    named = [_waits_for_a_name(cluster, number) for number in range(len(cluster.demands))]
    pairs = zip(cluster.demands, named, strict=True)
    unruly = next((each for each, is_named in pairs if each.members and (each.shape.is_unruly or is_named)), None)
    for group in groups:
        shape = cluster.demands[group.demand].shape
        if named[group.demand]:
            why = "it requests a node by name, and names of future nodes are unknown"
            yield replace(group, verdict="UNKNOWN", why=why, next="")
        elif group.verdict != "NO" and (limit := _limit_of(shape.namespace, pools)):
            yield replace(group, verdict="UNKNOWN", why=f"{limit} may refuse its pods, and is not considered", next="")
        elif (rules := cluster.unknown[group.demand]) and (shape.is_unruly or group.verdict != "NO"):
            yield replace(group, verdict="UNKNOWN", why=f"symph does not model {', '.join(rules)}", next="")
        elif group.verdict == "NO" and (uncertainty := _why_no_is_uncertain(cluster, group.demand)):
            why = f"{group.why}; but {uncertainty[0]}" if cluster.fits[group.demand] else uncertainty[0]
            yield replace(group, verdict="UNKNOWN", why=why, next=uncertainty[1])
        elif unruly and (group.verdict != "NO" or cluster.fits[group.demand]):
            why = f"{unruly.name} may take any node: {', '.join(unruly.shape.unknown) or 'it requests one by name'}"
            yield replace(group, verdict="UNKNOWN", why=why, next="")
        else:
            yield group


def _limit_of(namespace: str, pools: Pools) -> str:
    """Return a quota or limit range of `namespace`, or of any if it is not set; empty if there is none."""
    found = (f"{name} of namespace {of}" for of, name in pools.limits if not namespace or of in ("", namespace))
    return next(found, "")


def _why_no_is_uncertain(cluster: Cluster, number: int) -> tuple[str, str] | None:
    """Return why a demand may have more room than counted, and how to find out; None if NO is certain.

    It may be able to use more nodes itself, or other demands that now compete with it may.
    """
    doubtful = [number]
    if cluster.fits[number]:
        doubtful += [other for other, rooms in enumerate(cluster.fits) if rooms and cluster.demands[other].count]
    return next((why for other in doubtful for why in cluster.maybe[other].values()), None)


def _waits_for_a_name(cluster: Cluster, number: int) -> bool:
    if cluster.fits[number] or all(node.is_live for node in cluster.classes):
        return False
    return not cluster.demands[number].shape.node_keys.isdisjoint(("", HOSTNAME))


def _best_packing(cluster: Cluster) -> tuple[Packing, bool]:
    """Return the packing that leaves least over, and True if the rest certainly cannot be placed.

    Demands that fit no node are ignored.
    """
    tries = orders(cluster)
    if len(cluster.demands) * len(cluster.classes) > _MOST_WORK:
        tries = tries[:1]
    best = min((pack(cluster, order) for order in tries), key=lambda packing: worth(cluster, packing))
    _, left, *_ = worth(cluster, best)
    if left == 0 or cannot_fit(cluster):
        return best, True
    pairs = zip(cluster.demands, cluster.fits, strict=True)
    placeable = tuple(demand if rooms else Demand(demand.shape, []) for demand, rooms in pairs)
    result = search(replace(cluster, demands=placeable))
    if isinstance(result, Packing):
        missing = {i: cluster.demands[i].count for i, rooms in enumerate(cluster.fits) if not rooms}
        return Packing(result.nodes, missing), True
    return best, result is False


def _groups(loads: _Loads, packing: Packing, *, is_certain: bool) -> Iterator[Group]:
    """Yield the verdict on each group, by a packing of the experiment's own pods."""
    cluster = loads.own

    @cache
    def is_roomy() -> bool:
        """Return True if a packing has room for the system's pods, too."""
        best = _best_packing(loads.system)[0]
        return not any(cluster.fits[number] for number in best.missing if not cluster.demands[number].members)

    for number, demand in enumerate(cluster.demands):
        if not demand.members:
            continue
        if not cluster.fits[number]:
            why, nxt = why_not(cluster, number)
            for name, count in demand.members:
                yield Group(name=name, count=count, verdict="NO", why=why, next=nxt, demand=number)
            continue
        proven = not cluster.unknown[number] and loads.proofs.holds(number) and is_whole(cluster, number)
        missing = packing.missing.get(number, 0)
        left_over = why_left_over(cluster, number, missing) if missing else ("", "")
        for name, count in reversed(demand.members):
            verdict: Verdict = "PACKABLE"
            if proven:
                verdict, nxt = "PROVEN", ""
                why = f"the scheduler places {'it' if count == 1 else f'all {count}'} in any order"
            elif missing:
                missing -= min(missing, count)
                verdict = "NO" if is_certain else "UNKNOWN"
                why, nxt = left_over
            elif not is_roomy():
                verdict, nxt = "UNKNOWN", _ONE_NODE_MORE
                why = "it fits, but leaves no room for the pods of kube-system"
            else:
                why, nxt = _packable_text(loads, number)
            yield Group(name=name, count=count, verdict=verdict, why=why, next=nxt, demand=number)


def _packable_text(loads: _Loads, number: int) -> tuple[str, str]:
    cluster = loads.own
    if not is_whole(cluster, number):
        return "it fits, but the scheduler may spread it over several slices", "pin it to one pool with assign_to"
    for rivals, step, without in loads.rivals:
        if without.holds(number):
            return f"it fits, but {rivals} may take its place", step
    return "it fits, but not if the scheduler places smaller pods first", (
        "give it its own pool or a higher priority, or raise max_nodes"
    )


def _as_gang(groups: tuple[Group, ...], gang: str) -> tuple[Group, ...]:
    weakest = min(groups, key=lambda group: WORST.index(group.verdict), default=None)
    if weakest is None:
        return groups
    why = f"gang ({gang}): starts only with {weakest.name}, which is {weakest.verdict}"
    return tuple(
        group
        if group.verdict == weakest.verdict
        else replace(group, verdict=weakest.verdict, why=why, next=weakest.next)
        for group in groups
    )


def _uses(cluster: Cluster, packing: Packing) -> Iterator[PoolUse]:
    by_pool: dict[int, list[Filled]] = {}
    for filled in packing.nodes:
        by_pool.setdefault(cluster.classes[filled.node].pool, []).append(filled)
    for number in sorted(by_pool):
        pool, filled_nodes = cluster.pools[number], by_pool[number]
        used, offered = Counter[str](), Counter[str]()
        for filled in filled_nodes:
            empty = cluster.classes[filled.node].free
            for name, have, left in zip(cluster.dimensions, empty, filled.free, strict=True):
                used[name] += (have - left) * filled.count
                offered[name] += have * filled.count
        nodes = sum(filled.count for filled in filled_nodes)
        each = default_prices().price(pool, spot=pool.is_spot)
        price = None if each is None else round(each * nodes, 6)
        yield PoolUse(pool=pool, nodes=nodes, used=used, offered=offered, price=price, filled=tuple(filled_nodes))


def _pending_note(cluster: Cluster, groups: int, first: int) -> Iterator[str]:
    wanted = {node for rooms in cluster.fits[:groups] for node in rooms}
    rivals = [
        name
        for number in range(first, len(cluster.demands))
        if cluster.may_use(number, wanted)
        for name, _ in cluster.demands[number].members
    ]
    if rivals:
        more = f" and {len(rivals) - 3} more" if len(rivals) > 3 else ""
        yield f"pending pods compete for the same nodes: {', '.join(sorted(rivals)[:3])}{more}"


def _notes(cluster: Cluster, pools: Pools) -> Iterator[str]:
    for number in cluster.pools_of(node for rooms in cluster.fits for node in rooms):
        pool = cluster.pools[number]
        yield from (f"{pool.name}: {note}" for note in pool.notes)
        yield from (f"{pool.name}: {uncertainty.text}" for uncertainty in pool.uncertainties)
    yield from pools.autoscaled
