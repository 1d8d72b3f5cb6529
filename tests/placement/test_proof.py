"""PROVEN and NO compared with brute force: all orders and all choices of a scheduler on small clusters."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from symphony_charts.placement.plan import Plan, plan_demands
from tests.placement.scheduler_model import PodKind, PoolKind, Reference, as_demands, as_pools


def sizes(largest: int) -> st.SearchStrategy[tuple[tuple[str, int], ...]]:
    return st.tuples(st.integers(1, largest), st.integers(0, largest)).map(
        lambda pair: (("cpu", pair[0]), ("memory", pair[1]))
    )


@st.composite
def clusters(draw: st.DrawFn) -> list[PoolKind]:
    pools = []
    for name in draw(st.sampled_from([("a",), ("a", "b")])):
        cpu, memory, pods = draw(st.integers(2, 8)), draw(st.integers(2, 8)), draw(st.integers(1, 5))
        has = (("cpu", cpu), ("memory", memory), ("pods", pods))
        pools.append(PoolKind(name, has, draw(st.integers(1, 2)), draw(st.booleans()) and name == "b"))
    return pools


@st.composite
def workloads(draw: st.DrawFn) -> list[PodKind]:
    kinds = {}
    for _ in range(draw(st.integers(1, 3))):
        kind = PodKind(
            asks=draw(sizes(6)),
            count=draw(st.integers(1, 3)),
            only=draw(st.sampled_from(["", "", "a", "b"])),
            port=draw(st.sampled_from([0, 0, 0, 80])),
            tolerates=draw(st.booleans()),
        )
        kinds[kind.asks, kind.only, kind.port, kind.tolerates] = kind
    return list(kinds.values())


def verdicts(plan: Plan) -> dict[str, str]:
    return {group.name: group.verdict for group in plan.groups}


@settings(max_examples=400, deadline=None)
@given(clusters(), workloads())
def test_a_proven_group_never_waits_in_any_order_on_any_choice_of_nodes(
    pools: list[PoolKind], pods: list[PodKind]
) -> None:
    told = verdicts(plan_demands(as_demands(pods), as_pools(pools)))
    waits = Reference(pools, pods).waits
    assert [name for number, name in enumerate(sorted(told)) if told[name] == "PROVEN" and waits[number]] == []


@settings(max_examples=400, deadline=None)
@given(clusters(), workloads())
def test_small_cases_are_decided_and_what_can_be_packed_is(pools: list[PoolKind], pods: list[PodKind]) -> None:
    told = verdicts(plan_demands(as_demands(pods), as_pools(pools)))
    assert "UNKNOWN" not in told.values()
    assert ("NO" not in told.values()) == Reference(pools, pods).can_place_all


@settings(max_examples=200, deadline=None)
@given(clusters(), workloads())
def test_no_node_holds_more_than_it_has(pools: list[PoolKind], pods: list[PodKind]) -> None:
    plan = plan_demands(as_demands(pods), as_pools(pools))
    cluster = plan.cluster
    placed = [0] * len(pods)
    for use in plan.uses:
        assert use.nodes <= use.pool.max_nodes
        for filled in use.filled:
            total = [0] * len(cluster.dimensions)
            for demand, count in filled.contents:
                placed[demand] += count * filled.count
                total = [have + need * count for have, need in zip(total, cluster.needs[demand], strict=True)]
            assert all(t <= f for t, f in zip(total, cluster.classes[filled.node].free, strict=True))
    lost = sum(group.count for group in plan.groups if group.verdict == "NO")
    assert sum(placed) >= sum(pod.count for pod in pods) - lost


@settings(max_examples=200, deadline=None)
@given(clusters(), workloads())
def test_more_nodes_never_turn_a_proof_into_a_no(pools: list[PoolKind], pods: list[PodKind]) -> None:
    before = verdicts(plan_demands(as_demands(pods), as_pools(pools)))
    more = [PoolKind(pool.name, pool.has, pool.count + 3, pool.tainted) for pool in pools]
    after = verdicts(plan_demands(as_demands(pods), as_pools(more)))
    assert [name for name in before if before[name] == "PROVEN" and after[name] == "NO"] == []


@settings(max_examples=200, deadline=None)
@given(clusters(), workloads())
def test_the_order_of_groups_changes_no_verdict(pools: list[PoolKind], pods: list[PodKind]) -> None:
    demands = as_demands(pods)
    forward = verdicts(plan_demands(demands, as_pools(pools)))
    assert verdicts(plan_demands(demands[::-1], as_pools(pools))) == forward


@settings(max_examples=200, deadline=None)
@given(clusters(), workloads())
def test_an_unrelated_tainted_pool_changes_no_verdict(pools: list[PoolKind], pods: list[PodKind]) -> None:
    strict = [PodKind(pod.asks, pod.count, pod.only, pod.port, False) for pod in pods]
    strict = list({(p.asks, p.only, p.port): p for p in strict}.values())
    with_other = [*pools, PoolKind("zz", (("cpu", 100), ("memory", 100), ("pods", 100)), 9, True)]
    without = verdicts(plan_demands(as_demands(strict), as_pools(pools)))
    assert verdicts(plan_demands(as_demands(strict), as_pools(with_other))) == without


def test_stranding_by_small_pods_is_packable_not_proven() -> None:
    node = (("cpu", 4), ("memory", 9), ("pods", 9))
    pods = [PodKind((("cpu", 4),), 1), PodKind((("cpu", 1),), 4)]
    told = verdicts(plan_demands(as_demands(pods), as_pools([PoolKind("a", node, 2)])))
    assert told["d0"] == "PACKABLE"


def test_most_replicated_groups_that_every_order_places_are_proven() -> None:
    rng = random.Random(7)
    proven = placed = 0
    for _ in range(150):
        node = (("cpu", rng.randint(3, 8)), ("memory", rng.randint(3, 8)), ("pods", rng.randint(2, 5)))
        sizes = {(("cpu", rng.randint(1, 4)), ("memory", rng.randint(1, 4))) for _ in range(rng.randint(1, 3))}
        pods = [PodKind(size, rng.randint(2, 3), port=rng.choice([0, 0, 0, 80])) for size in sorted(sizes)]
        pools = [PoolKind("a", node, rng.randint(2, 4))]
        told = verdicts(plan_demands(as_demands(pods), as_pools(pools)))
        waits = Reference(pools, pods).waits
        placed += waits.count(False)
        proven += sum(told[f"d{number}"] == "PROVEN" for number, wait in enumerate(waits) if not wait)
    assert placed > 50
    assert proven >= 0.9 * placed
