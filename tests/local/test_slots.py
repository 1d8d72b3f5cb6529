"""Processes that a name or a changed file means, and files that are ignored."""

from __future__ import annotations

from pathlib import PurePath

import pytest

from symphony_charts.errors import NotFound
from symphony_charts.local.plan.records import LocalPlan
from symphony_charts.local.reload import IGNORED, Watched, is_ignored, slots_using
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


ROOT = PurePath("/w/lib")


LEFT = (".git/index", "__pycache__/a.cpython-311.pyc", "a.pyc", ".mypy_cache/x", "x/.venv/bin/y", ".a.py.swp", "a.py~")
ORDINARY = ("a.py", "x/y.yaml", "git", ".env", "tmp/a", "swp")


@pytest.mark.parametrize("name", [*LEFT, "4913", *ORDINARY])
def test_what_editors_and_tools_leave_behind_is_ignored_and_nothing_else(name: str) -> None:
    assert is_ignored(ROOT / name, [ROOT], IGNORED) is (name not in ORDINARY)


def test_a_pattern_fits_a_name_or_the_path_below_the_folder() -> None:
    assert is_ignored(ROOT / "out/a.ckpt", [ROOT], ["*.ckpt"])
    assert is_ignored(ROOT / "out/a.txt", [ROOT], ["out/*"])
    assert not is_ignored(ROOT / "a.txt", [ROOT], ["lib"])
    assert not is_ignored(PurePath("/home/.venv/lib/a.py"), [PurePath("/home/.venv/lib")], IGNORED)


def test_a_change_concerns_the_processes_of_its_folder_and_of_its_file() -> None:
    plan = plan_of(*(planned(name=name, process=name) for name in "abcd"))
    watched = [Watched(path=ROOT, processes=("a",)), Watched(path=ROOT / "x.py", processes=("b", "c"))]
    assert slots_using(plan, [ROOT / "x.py", ROOT / "d/y.py"], watched) == {0: "d/y.py, x.py", 1: "x.py", 2: "x.py"}


def test_without_names_a_change_concerns_all_processes_but_steps() -> None:
    plan = plan_of(planned(), planned(is_step=True), planned())
    changed = [ROOT / "x.py", PurePath("/w/other.py")]
    assert slots_using(plan, changed, [Watched(path=ROOT)]) == {0: "x.py", 2: "x.py"}
