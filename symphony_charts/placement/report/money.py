"""Costs of a plan by pool, by group, for hours and for trials; parts without a price get their own line."""

from __future__ import annotations

from collections.abc import Iterator

from symphony_charts.placement.machines.prices import default_prices
from symphony_charts.placement.plan import Plan, PoolUse
from symphony_charts.placement.pools.pool import Pool

__all__ = ["group_prices", "money_data", "money_lines", "price_per_hour", "priced_total", "unpriced"]


def priced_total(plan: Plan) -> float:
    """Dollars per hour of all that has a price."""
    return round(sum(use.price for use in plan.uses if use.price is not None), 6)


def price_per_hour(plan: Plan) -> float | None:
    """Return dollars per hour of all nodes; None if a node has no price or a group has no node."""
    return priced_total(plan) if plan.fits and not unpriced(plan) else None


def unpriced(plan: Plan) -> list[str]:
    """Return a text for each pool without a price."""
    return [_no_price(use.pool, use.nodes) for use in plan.uses if use.price is None]


def _no_price(pool: Pool, nodes: int) -> str:
    parts = [pool.machine_type or "a machine of no known type"]
    parts += [f"{pool.attached_gpus} {pool.gpu_type}"] if pool.attached_gpus else []
    if not pool.region:
        where = "of no known region"
    else:
        where = f"in {pool.region}" + ("" if pool.region in default_prices().regions else ", a region without prices")
    return f"{nodes} x {' + '.join(parts)} {where} (pool {pool.name})"


def group_prices(plan: Plan) -> dict[str, float | None]:
    """Dollars per hour of each group: its share of the nodes it is on; None where a part of that has no price."""
    result: dict[str, float | None] = {group.name: 0.0 for group in plan.groups}
    for use in plan.uses:
        weights = _weights(plan, use)
        total = sum(weights.values())
        for name, weight in weights.items():
            before = result.get(name)
            share = None if use.price is None or not total else use.price * weight / total
            result[name] = None if before is None or share is None else before + share
    return {name: None if price is None else round(price, 6) for name, price in result.items()}


def _weights(plan: Plan, use: PoolUse) -> dict[str, float]:
    """Return the part of a pool's nodes that each group takes, by the resource it takes most of."""
    weights: dict[str, float] = {}
    for filled in use.filled:
        free = plan.cluster.classes[filled.node].free
        for number, count in filled.contents:
            need, demand = plan.cluster.needs[number], plan.cluster.demands[number]
            share = max((asked / have for asked, have in zip(need, free, strict=True) if have), default=0.0)
            for name, members in demand.members:
                weights[name] = weights.get(name, 0.0) + share * count * filled.count * members / demand.count
    return weights


def money_data(plan: Plan, hours: float | None = None, trials: int = 1) -> dict[str, object]:
    """Return the money of a plan as data; `perHour` is what has a price, `noPrice` names the rest."""
    total = priced_total(plan)
    data: dict[str, object] = {
        "currency": "USD",
        "perHour": total,
        "noPrice": unpriced(plan),
        "spotPerHour": _all(plan, "spot"),
        "committed1YearPerHour": _all(plan, "1yr"),
        "committed3YearsPerHour": _all(plan, "3yr"),
        "groups": group_prices(plan),
        "origins": [{"of": what, "date": date, "source": source} for what, date, source in _origins(plan)],
    }
    if hours is not None:
        data |= {"hours": hours, "trials": trials, "total": round(total * hours * trials, 2)}
    return data


def _all(plan: Plan, kind: str) -> float | None:
    """Return the cost of the same nodes as spot or committed; None if one of them has no such price."""
    total = 0.0
    for use in plan.uses:
        pool = use.pool
        if kind == "spot":
            each = default_prices().price_of(pool, spot=True)
        else:
            attached = pool.attached_gpus or pool.local_ssds
            each = None if attached else default_prices().committed(pool.machine_type, pool.region, int(kind[0]))
        if each is None:
            return None
        total += each * use.nodes
    return round(total, 6) if plan.uses else None


def _origins(plan: Plan) -> list[tuple[str, str, str]]:
    priced = [use.pool for use in plan.uses if use.price is not None]
    return sorted({origin for pool in priced for origin in default_prices().origins_of(pool)}, reverse=True)


def money_lines(plan: Plan, hours: float | None = None, trials: int = 1) -> Iterator[str]:
    """Yield the lines below the total: spot, commitments, hours, missing prices, and sources."""
    total = priced_total(plan)
    others = [("as spot", _all(plan, "spot")), ("for 1 year", _all(plan, "1yr")), ("for 3 years", _all(plan, "3yr"))]
    cheaper = [f"${price:.2f}/h {name}" for name, price in others if price is not None and price < total]
    if cheaper:
        yield f"the same nodes: {', '.join(cheaper)}"
    if hours is not None and total:
        times = f"{hours:g} h" + (f" x {trials} trials" if trials > 1 else "")
        yield f"for {times}: ${total * hours * trials:.2f}" + (" and what has no price" if unpriced(plan) else "")
    shares = {name: price for name, price in group_prices(plan).items() if price}
    if len(shares) > 1 and len(shares) <= 12:
        yield f"by group: {', '.join(f'{name} ${price:.2f}/h' for name, price in sorted(shares.items()))}"
    yield from (f"no price: {text}" for text in unpriced(plan))
    origins = [f"{what}, {date} ({source})" for what, date, source in _origins(plan)]
    if origins:
        yield f"{'; '.join(origins)}; disks, traffic and the cluster's fee are not in them"
