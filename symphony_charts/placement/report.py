"""Tables and costs of a plan, as text and as data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from symphony_charts.formats.quantity import gib_text
from symphony_charts.placement.fit.verdicts import WORST, Group, obstacles
from symphony_charts.placement.plan import Plan, PoolUse
from symphony_charts.placement.pools.pool import Pool
from symphony_charts.placement.prices import default_prices


def priced_total(plan: Plan) -> float:
    """Return dollars per hour of everything that has a price."""
    return round(sum(use.price for use in plan.uses if use.price is not None), 6)


def price_per_hour(plan: Plan) -> float | None:
    """Return dollars per hour of all nodes; None if a node has no price or a group has no node."""
    return priced_total(plan) if plan.fits and not unpriced(plan) else None


def unpriced(plan: Plan) -> list[str]:
    """Return a message for each pool without a price."""
    return [_no_price(use.pool, use.nodes) for use in plan.uses if use.price is None]


def _no_price(pool: Pool, nodes: int) -> str:
    gpus = f" + {pool.attached_gpus} {pool.gpu_type}" if pool.attached_gpus else ""
    where = f"in {pool.region}" if pool.region else "in an unknown region"
    if pool.region and pool.region not in default_prices().regions:
        where += ", a region without prices"
    return f"{nodes} x {pool.machine_type or 'an unknown machine'}{gpus} {where} (pool {pool.name})"


def money_data(plan: Plan, hours: float | None = None, trials: int = 1) -> dict[str, object]:
    """Return the prices of a plan as data; `perHour` covers everything with a price, `noPrice` names the rest."""
    total = priced_total(plan)
    data: dict[str, object] = {
        "currency": "USD",
        "perHour": total,
        "noPrice": unpriced(plan),
        "spotPerHour": _as_spot(plan),
        "origins": [{"of": what, "date": date, "source": source} for what, date, source in _origins(plan)],
    }
    if hours is not None:
        data |= {"hours": hours, "trials": trials, "total": round(total * hours * trials, 2)}
    return data


def _as_spot(plan: Plan) -> float | None:
    """Return the cost of the same nodes as spot; None if one of them has no such price."""
    each = [(default_prices().price(use.pool, spot=True), use.nodes) for use in plan.uses]
    total = sum(price * nodes for price, nodes in each if price is not None)
    return round(total, 6) if each and all(price is not None for price, _ in each) else None


def _origins(plan: Plan) -> list[tuple[str, str, str]]:
    priced = [use.pool for use in plan.uses if use.price is not None]
    return sorted({origin for pool in priced for origin in default_prices().origins_of(pool)}, reverse=True)


def money_lines(plan: Plan, hours: float | None = None, trials: int = 1) -> Iterator[str]:
    """Yield the lines below the total: spot, hours, missing prices, and sources."""
    total = priced_total(plan)
    spot = _as_spot(plan)
    if spot is not None and spot < total:
        yield f"the same nodes: ${spot:.2f}/h as spot"
    if hours is not None and total:
        times = f"{hours:g} h" + (f" x {trials} trials" if trials > 1 else "")
        yield f"for {times}: ${total * hours * trials:.2f}{' plus the parts without a price' * bool(unpriced(plan))}"
    yield from (f"no price: {text}" for text in unpriced(plan))
    origins = [f"{what}, {date} ({source})" for what, date, source in _origins(plan)]
    if origins:
        yield f"{'; '.join(origins)}; disks, traffic and the cluster's fee are extra"


GPU, TPU = "nvidia.com/gpu", "google.com/tpu"
_SHOWN = 6  # names in one cell


def pool_rows(plan: Plan) -> list[dict[str, object]]:
    """Return one row of table texts per used pool."""
    rows: list[dict[str, object]] = []
    for use in plan.uses:
        used, offered = use.used, use.offered
        devices = GPU if offered.get(GPU) else TPU
        rows.append(
            {
                "name": use.pool.name,
                "machine": use.pool.machine_type or "-",
                "nodes": f"{use.nodes}/{use.pool.max_nodes}",
                "cpu": f"{used.get('cpu', 0) / 1000:.1f}/{offered.get('cpu', 0) / 1000:.1f}",
                "memory": f"{gib_text(used.get('memory', 0))}/{gib_text(offered.get('memory', 0))} GiB",
                "gpu": f"{used.get(devices, 0)}/{offered[devices]}" if offered.get(devices) else "-",
                "price": "no price" if use.price is None else f"{use.price:.2f}",
                "what": _what(plan, use),
                "accuracy": use.pool.accuracy,
                "waste": f"{_waste(use):.0%}",
                "source": use.pool.source,
            }
        )
    return rows


def group_rows(plan: Plan) -> list[Group]:
    """Return the groups, those with verdict NO first."""
    return sorted(plan.groups, key=lambda group: WORST.index(group.verdict))


def plan_sentence(plan: Plan) -> str:
    """Return a plain sentence about the verdict."""
    name, pods = plan.experiment or "this", sum(group.count for group in plan.groups)
    on = f"{plan.nodes} node{'s' if plan.nodes != 1 else ''}"
    worst = next(iter(group_rows(plan)), None)
    if worst is None:
        return f"{name} requests no pods."
    lost = [group for group in plan.groups if group.verdict == worst.verdict]
    who = worst.name if len(lost) == 1 else f"{worst.name} and {len(lost) - 1} more"
    if worst.verdict == "PROVEN":
        total, missing = priced_total(plan), unpriced(plan)
        cost = f" for ${total:.2f} an hour" if total and not missing else ""
        every_pod = "its pod is" if pods == 1 else f"all {pods} pods are"
        return f"{name} fits: {every_pod} guaranteed to schedule on {on}{cost}."
    if worst.verdict == "PACKABLE":
        return f"{name} fits on {on}, but the scheduler may miss it: {who} is not guaranteed to schedule."
    if worst.verdict == "UNKNOWN":
        return f"symph cannot tell if {name} fits: {who}, {worst.why}."
    return f"{name} does not fit: {who}, {worst.why}."


def total_line(plan: Plan) -> str:
    """Return nodes, use of CPU, price, and the assumed requests of system pods."""
    cpu = sum(use.used.get("cpu", 0) for use in plan.uses)
    offered = sum(use.offered.get("cpu", 0) for use in plan.uses)
    share = f"{cpu / offered:.0%} of CPU used" if offered else "nothing used"
    total = priced_total(plan)
    cost = f"${total:.2f}/h"
    if unpriced(plan):
        cost = f"{cost} plus the parts without a price" if total else "no price"
    systems = sorted(
        {f"{use.pool.system.get('cpu', 0)}m/{use.pool.system.get('memory', 0) >> 20}Mi" for use in plan.uses}
    )
    taken = f"; system pods {', '.join(systems[:3])} per node are already subtracted" if systems else ""
    return f"total {plan.nodes} node{'s' if plan.nodes != 1 else ''}, {share}, {cost}{taken}"


def plan_data(plan: Plan, *, hours: float | None = None, trials: int = 1) -> dict[str, object]:
    """Return the plan as JSON data; amounts are in millicores and bytes."""
    return {
        "sentence": plan_sentence(plan),
        "experiment": plan.experiment,
        "source": plan.source,
        "verdict": plan.verdict,
        "groups": [
            {
                "name": group.name,
                "count": group.count,
                "verdict": group.verdict,
                "why": group.why,
                "next": group.next,
                "requests": dict(plan.cluster.demands[group.demand].shape.requests),
            }
            for group in plan.groups
        ],
        "pools": [_use_data(plan, use) for use in plan.uses],
        "decisions": [{key: getattr(d, key) for key in ("process", "mode", "pool", "reason")} for d in plan.decisions],
        "notes": list(plan.notes),
        "money": money_data(plan, hours, trials),
        "totals": {"nodes": plan.nodes, "pricePerHour": None if unpriced(plan) else priced_total(plan)},
    }


def explain(plan: Plan, pod: str) -> dict[str, Any] | None:
    """Return where the pods of a group or single process go, and what keeps them off each other pool.

    None if there is no such pod in the plan.
    """
    group = next((group for group in plan.groups if group.name == pod), None)
    if group is None:
        return None
    demand = plan.cluster.demands[group.demand]
    rooms = plan.cluster.fits[group.demand]
    used = {
        use.pool.name: sum(dict(filled.contents).get(group.demand, 0) * filled.count for filled in use.filled)
        for use in plan.uses
    }
    pools: list[dict[str, Any]] = []
    for number, pool in enumerate(plan.pools.pools):
        per_node = max((n for node, n in rooms.items() if plan.cluster.classes[node].pool == number), default=0)
        blocks = [text for _, text in obstacles(demand.shape, pool)] or ["TPU slices or other pods block it"]
        row = {"pool": pool.name, "perNode": per_node, "pods": used.get(pool.name, 0)}
        pools.append({**row, "obstacles": [] if per_node else blocks})
    return {
        "name": group.name,
        "verdict": group.verdict,
        "why": group.why,
        "requests": dict(demand.shape.requests),
        "reasons": [d.reason for d in plan.decisions if d.process.split("/")[0] == group.name],
        "pools": sorted(pools, key=lambda row: (-row["pods"], -row["perNode"], row["pool"])),
    }


def _waste(use: PoolUse) -> float:
    """Return the unused share of CPU or memory, whichever is used more."""
    shares = [use.used.get(name, 0) / use.offered[name] for name in ("cpu", "memory") if use.offered.get(name)]
    return 1 - max(shares, default=1.0)


def _use_data(plan: Plan, use: PoolUse) -> dict[str, object]:
    return {
        "name": use.pool.name,
        "machineType": use.pool.machine_type,
        "nodes": use.nodes,
        "maxNodes": use.pool.max_nodes,
        "accuracy": use.pool.accuracy,
        "used": {name: amount for name, amount in use.used.items() if use.offered.get(name)},
        "offered": {name: amount for name, amount in use.offered.items() if amount},
        "waste": round(_waste(use), 4),
        "pricePerHour": use.price,
        "source": use.pool.source,
        "contents": [
            {
                "nodes": filled.count,
                "node": plan.cluster.classes[filled.node].name,
                "pods": {plan.cluster.demands[demand].name: count for demand, count in filled.contents},
            }
            for filled in use.filled
        ],
    }


def _what(plan: Plan, use: PoolUse) -> str:
    """Return the contents of the pool and the pods per node, such as ``agent x8 (4+4), replay``."""
    per_node: dict[int, Counter[int]] = {}
    for filled in use.filled:
        for demand, count in filled.contents:
            per_node.setdefault(demand, Counter())[count] += filled.count
    parts = [text for demand in sorted(per_node) for text in _names(plan, demand, per_node[demand])]
    parts.sort(key=lambda part: (part.startswith("("), part))
    more = len(parts) - _SHOWN
    return ", ".join(parts[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _names(plan: Plan, demand: int, nodes: Counter[int]) -> Iterator[str]:
    total = sum(count * number for count, number in nodes.items())
    names = plan.cluster.demands[demand]
    if len(names.members) == 1:
        yield names.name if total == 1 else f"{names.name} x{total}{_spread(nodes)}"
    elif total == names.count:
        yield from (f"{name} x{count}" if count > 1 else name for name, count in names.members)
    else:
        yield f"{names.name} x{total}"


def _spread(nodes: Counter[int]) -> str:
    """Return ``(4+4)``, or for many nodes ``(4 a node)``."""
    number = sum(nodes.values())
    if number == 1:
        return ""
    if number <= 4:
        return f" ({'+'.join(str(c) for c in sorted(nodes.elements(), reverse=True))})"
    return f" ({max(nodes)} a node)"
