"""Start order of processes, and cycles in it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from symphony_charts.local.plan.readiness import without_cycles

EDGES = st.dictionaries(st.integers(0, 7), st.lists(st.integers(0, 7), max_size=4), max_size=8)


def test_a_chain_keeps_its_order() -> None:
    assert without_cycles({"a": ["b"], "b": ["c"]}, {}) == {"a": ["b"], "b": ["c"]}


def test_a_ring_waits_for_nobody() -> None:
    assert without_cycles({"a": ["b"], "b": ["c"], "c": ["a"]}, {}) == {"a": [], "b": [], "c": []}


def test_strict_order_breaks_a_dial_in_the_other_direction() -> None:
    assert without_cycles({"a": ["b"]}, {"b": ["a"]}) == {"a": []}


@given(EDGES)
def test_what_is_left_has_no_cycle(edges: dict[int, list[int]]) -> None:
    left = without_cycles(edges, {})
    reached: dict[int, set[int]] = {}
    for start in left:
        todo, seen = list(left[start]), set[int]()
        while todo:
            node = todo.pop()
            if node not in seen:
                seen.add(node)
                todo += left.get(node, [])
        reached[start] = seen
    assert all(node not in seen for node, seen in reached.items())
