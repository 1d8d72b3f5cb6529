"""Verdicts other than PROVEN name the cheapest change that proves the plan, and the change works."""

from __future__ import annotations

from typing import Any

from symphony_charts.placement.fit.demand import Demand, Shape
from symphony_charts.placement.node_svg import draw_nodes
from symphony_charts.placement.plan import Plan, plan_demands
from symphony_charts.placement.pools.readers import pools_of_data
from symphony_charts.placement.report import plan_sentence

MIB = 1 << 20


def plan(rows: list[dict[str, Any]], *asked: tuple[int, int]) -> Plan:
    pools = pools_of_data({"kube_system": "elsewhere", "pools": rows}, "pools.yaml")
    demands = [
        Demand(Shape(requests=(("cpu", cpu), ("memory", MIB), ("pods", 1))), [(f"g{index}", count)])
        for index, (cpu, count) in enumerate(asked)
    ]
    return plan_demands(demands, pools, experiment="rl")


def std(nodes: int, machine: str = "n1-standard-8", name: str = "std8") -> dict[str, Any]:
    return {"name": name, "machine_type": machine, "nodes": nodes, "zones": ["us-central1-a"]}


def test_a_packing_that_may_be_missed_says_how_many_nodes_prove_it() -> None:
    asked = ((5000, 1), (1000, 6))
    group = plan([std(2)], *asked).groups[0]
    assert group.verdict == "PACKABLE"
    assert group.next.startswith("1 node more of std8 ($0.38/h, $0.13 as spot) makes")
    assert plan([std(3)], *asked).groups[0].verdict == "PROVEN"


def test_the_fewest_nodes_are_found() -> None:
    assert plan([std(2)], (7000, 40)).groups[0].next.startswith("38 nodes more of std8")
    assert plan([std(39)], (7000, 40)).groups[0].verdict == "NO"
    assert plan([std(40)], (7000, 40)).groups[0].verdict == "PROVEN"


def test_the_cheaper_pool_is_the_way_out() -> None:
    rows = [std(1), std(1, "n1-standard-32", "std32")]
    assert "more of std8" in plan(rows, (7000, 6)).groups[0].next


def test_a_plan_opens_with_one_plain_sentence() -> None:
    fits = plan_sentence(plan([std(2)], (1000, 3)))
    assert fits == "rl fits: all 3 pods are guaranteed to schedule on 1 node for $0.38 an hour."
    assert plan_sentence(plan([std(2)], (1000, 1))).startswith(
        "rl fits: its pod is guaranteed to schedule on 1 node for"
    )
    assert plan_sentence(plan([std(2)], (5000, 1), (1000, 6))).startswith("rl fits on 2 nodes, but")
    assert plan_sentence(plan([std(2)], (70000, 1))).startswith("rl does not fit: g0, needs 70 CPU")


def test_the_picture_shows_the_sentence_and_the_way_out() -> None:
    text = draw_nodes(plan([std(2)], (5000, 1), (1000, 6)))
    assert "rl fits on 2 nodes, but" in text
    assert "1 node more of std8" in text
