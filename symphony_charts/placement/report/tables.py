"""A plan becomes rows and data: what `symph plan` prints, and what its JSON holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from symphony_charts.formats.quantity import gib_text
from symphony_charts.placement.fit.reasons import obstacles
from symphony_charts.placement.fit.verdicts import Group
from symphony_charts.placement.plan import Plan, PoolUse
from symphony_charts.placement.report.money import money_data, priced_total, unpriced

__all__ = ["explain", "group_rows", "plan_data", "plan_sentence", "pool_rows", "total_line"]

GPU, TPU = "nvidia.com/gpu", "google.com/tpu"
_SHOWN = 6  # names in one cell


def pool_rows(plan: Plan) -> list[dict[str, object]]:
    """One row per pool that is used, with texts for a table."""
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
    """Return the groups, what cannot be first."""
    order = {"NO": 0, "UNKNOWN": 1, "PACKABLE": 2, "PROVEN": 3}
    return sorted(plan.groups, key=lambda group: (order[group.verdict], group.name))


def plan_sentence(plan: Plan) -> str:
    """One plain sentence that says whether the experiment fits."""
    name, pods = plan.experiment or "this", sum(group.count for group in plan.groups)
    nodes = sum(use.nodes for use in plan.uses)
    on = f"{nodes} node{'s' if nodes != 1 else ''}"
    worst = next(iter(group_rows(plan)), None)
    if worst is None:
        return f"{name} asks for no pod."
    lost = [group for group in plan.groups if group.verdict == worst.verdict]
    who = worst.name if len(lost) == 1 else f"{worst.name} and {len(lost) - 1} more"
    if worst.verdict == "PROVEN":
        total, missing = priced_total(plan), unpriced(plan)
        cost = f" for ${total:.2f} an hour" if total and not missing else ""
        return f"{name} fits: all {pods} pods certainly find room, on {on}{cost}."
    if worst.verdict == "PACKABLE":
        return f"{name} fits on {on}, but the scheduler may miss it: {who} is not certain to find room."
    if worst.verdict == "UNKNOWN":
        return f"It is not known whether {name} fits: {who}, {worst.why}."
    return f"{name} does not fit: {who}, {worst.why}."


def total_line(plan: Plan) -> str:
    """Nodes, use of CPU, price, and what system pods were taken to need."""
    nodes = sum(use.nodes for use in plan.uses)
    cpu = sum(use.used.get("cpu", 0) for use in plan.uses)
    offered = sum(use.offered.get("cpu", 0) for use in plan.uses)
    share = f"{cpu / offered:.0%} of CPU used" if offered else "nothing used"
    total = priced_total(plan)
    cost = f"${total:.2f}/h"
    if unpriced(plan):
        cost = f"{cost} and what has no price" if total else "no price"
    systems = sorted({_system_text(use) for use in plan.uses})
    taken = f"; system pods {', '.join(systems[:3])} per node are already taken off" if systems else ""
    return f"total {nodes} node{'s' if nodes != 1 else ''}, {share}, {cost}{taken}"


def plan_data(plan: Plan, *, hours: float | None = None, trials: int = 1) -> dict[str, object]:
    """Return the plan as JSON; amounts are millicores and bytes."""
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
        "decisions": [
            {"process": d.process, "mode": d.mode, "pool": d.pool, "reason": d.reason} for d in plan.decisions
        ],
        "notes": list(plan.notes),
        "money": money_data(plan, hours, trials),
        "totals": {
            "nodes": sum(use.nodes for use in plan.uses),
            "pricePerHour": None
            if any(use.price is None for use in plan.uses)
            else round(sum(use.price or 0 for use in plan.uses), 6),
        },
    }


def explain(plan: Plan, pod: str) -> dict[str, object] | None:
    """Explain where the pods of a group or lone process go, and what keeps them off each other pool.

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
    pools = []
    for number, pool in enumerate(plan.pools.pools):
        per_node = max((n for node, n in rooms.items() if plan.cluster.classes[node].pool == number), default=0)
        blocks = [text for _, text in obstacles(demand.shape, pool)] if not per_node else []
        pools.append(
            {
                "pool": pool.name,
                "perNode": per_node,
                "pods": used.get(pool.name, 0),
                "obstacles": blocks
                or ([] if per_node else ["only whole TPU slices, or present pods, stand in the way"]),
            }
        )
    pools.sort(key=lambda row: (-_number(row["pods"]), -_number(row["perNode"]), str(row["pool"])))
    reasons = [d.reason for d in plan.decisions if d.process.split("/")[0] == group.name]
    return {
        "name": group.name,
        "verdict": group.verdict,
        "why": group.why,
        "requests": dict(demand.shape.requests),
        "reasons": reasons,
        "pools": pools,
    }


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _system_text(use: PoolUse) -> str:
    system = use.pool.system
    return f"{system.get('cpu', 0)}m/{system.get('memory', 0) >> 20}Mi"


def _waste(use: PoolUse) -> float:
    """Return the share of CPU and memory, whichever is used more, that stays empty."""
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
    """``agent x8 (4+4), replay``: who is on the pool, and how many on each node."""
    per_node: dict[int, Counter[int]] = {}
    for filled in use.filled:
        for demand, count in filled.contents:
            per_node.setdefault(demand, Counter())[count] += filled.count
    parts = [text for demand in sorted(per_node) for text in _names(plan, demand, per_node[demand])]
    parts.sort()
    more = len(parts) - _SHOWN
    return ", ".join(parts[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _names(plan: Plan, demand: int, nodes: Counter[int]) -> Iterator[str]:
    total = sum(count * number for count, number in nodes.items())
    demand_names = plan.cluster.demands[demand]
    if len(demand_names.members) > 1:
        if total == demand_names.count:
            yield from (f"{name} x{count}" if count > 1 else name for name, count in demand_names.members)
        else:
            yield f"{demand_names.name} x{total}"
        return
    name = demand_names.members[0][0]
    yield name if total == 1 else f"{name} x{total}{_spread(nodes)}"


def _spread(nodes: Counter[int]) -> str:
    """``(4+4)``, or for many nodes ``(4 a node)``."""
    number = sum(nodes.values())
    if number == 1:
        return ""
    if number <= 4:
        return f" ({'+'.join(str(c) for c in sorted(nodes.elements(), reverse=True))})"
    return f" ({max(nodes)} a node)"
