"""Workloads that keep running after an experiment is done, and those that a failure ends, kind by kind."""

from __future__ import annotations

import pytest

from symphony_charts.chart.release import merge
from symphony_charts.kinds.registry import failure_difference, runs_on
from tests.chart.harness import built_of, experiment_of

_PROCESSES = {
    "learner": {"command": ["x"]},
    "actor": {"command": ["x"]},
    "judge": {"command": ["x"]},
    "board": {"command": ["x"], "lifecycle": "service"},
}
_KINDS = [
    ("jobs", ["learner"], ["actor", "judge", "board"]),
    ("jobset", ["learner"], ["board"]),
    ("jobset", ["learner", "actor"], ["board"]),
    ("appwrapper", ["learner"], ["actor", "judge", "board"]),
    ("volcano", ["learner"], ["board"]),
    ("volcano", ["learner", "actor"], ["judge", "board"]),
    ("volcano", [], ["board"]),
]


@pytest.mark.parametrize(("kind", "done", "left"), _KINDS)
def test_what_runs_on_follows_from_the_kind(kind: str, done: list[str], left: list[str]) -> None:
    chart = built_of(experiment_of(processes=_PROCESSES, workload={"kind": kind}, done_when=done))
    assert sorted(group for group, _ in runs_on(chart, chart.values)) == sorted(left)


def test_a_group_without_replicas_does_not_run_on() -> None:
    chart = built_of(experiment_of(processes=_PROCESSES))
    values = merge(chart.values, {"groups": {"board": {"replicas": 0}}})
    assert runs_on(chart, values) == []


def test_operator_v0_removes_the_pods_of_its_job_unless_it_cleans_nothing() -> None:
    processes = {"coordinator": {"command": ["x"]}, "collector": _PROCESSES["board"], "board": _PROCESSES["board"]}
    for policy, left in (("All", ["board"]), ("None", ["board", "collector"])):
        workload = {"kind": "dijob", "dijob": {"operator": "v0", "clean_pod_policy": policy}}
        chart = built_of(experiment_of(processes=processes, workload=workload))
        assert [group for group, _ in runs_on(chart, chart.values)] == left


def test_a_service_in_a_pod_that_ends_does_not_run_on() -> None:
    chart = built_of(experiment_of(groups={"pair": {"processes": _PROCESSES}}))
    assert runs_on(chart, chart.values) == []


@pytest.mark.parametrize(
    ("kind", "on_exit", "differs"),
    [
        ("jobs", "stop-all", "stops the run here; on kind jobs other groups continue"),
        ("jobs", "keep", ""),
        ("appwrapper", "stop-all", "stops the run here"),
        ("jobset", "stop-all", ""),
        ("jobset", "keep", "stops the others on kind jobset, but not here"),
        ("volcano", "stop-all", ""),
        ("dijob", "stop-all", ""),
    ],
)
def test_what_one_failure_ends_is_the_same_or_said(kind: str, on_exit: str, differs: str) -> None:
    processes = {name: process for name, process in _PROCESSES.items() if name != "board"}
    experiment = experiment_of(processes=processes, workload={"kind": kind}, local={"on_exit": on_exit})
    said = failure_difference(experiment)
    assert (differs in said, bool(said)) == (True, bool(differs))


def test_where_there_is_one_pod_nothing_differs() -> None:
    assert failure_difference(experiment_of(processes={"a": {"command": ["x"]}})) == ""
