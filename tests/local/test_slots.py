"""Selection of a run's processes by name."""

from __future__ import annotations

import pytest

from symphony_charts.errors import NotFound
from symphony_charts.local.plan.records import LocalPlan
from symphony_charts.local.runs import find_slots
from tests.local.records import plan_of, planned


@pytest.fixture
def plan() -> LocalPlan:
    """Return a plan with two replicas of `agent`, a process `agent-1`, and a group of two replicas."""
    rows = [
        ("agent-0", "", "agent.0", "agent", 0),
        ("agent-1", "", "agent.1", "agent", 1),
        ("agent-1", "", "agent-1", "agent-1", 0),
        ("lead-0", "team", "team-0", "lead", 0),
        ("lead-1", "team", "team-1", "lead", 1),
        ("agent", "other", "other", "agent", 0),
    ]
    keys = ("name", "group", "pod", "process", "index")
    return plan_of(*(planned(**dict(zip(keys, row, strict=True))) for row in rows))  # type: ignore[arg-type]  # by name


@pytest.mark.parametrize(
    ("name", "slots"),
    [
        ("agent-1", [2]),
        ("agent/1", [1]),
        ("agent-0", [0]),
        ("agent.1/agent", [1]),
        ("lead", [3, 4]),
        ("team/lead", [3, 4]),
        ("team/lead-1", [4]),
        ("team/lead/1", [4]),
        ("team-1/lead", [4]),
        ("lead/0", [3]),
        ("agent", [0, 1, 5]),
        ("other/agent", [5]),
    ],
)
def test_a_name_means_a_process_first_and_then_a_replica(plan: LocalPlan, name: str, slots: list[int]) -> None:
    assert find_slots(plan, name) == slots


@pytest.mark.parametrize("name", ["", "age", "agent-", "agent-10", "agent/2", "team/", "team/agent", "nobody/lead"])
def test_a_name_that_means_nobody_lists_who_there_is(plan: LocalPlan, name: str) -> None:
    with pytest.raises(NotFound, match=f'no process "{name}"') as caught:
        find_slots(plan, name)
    assert caught.value.next.startswith("its processes: agent-0, agent-1, agent-1, team/lead-0")
