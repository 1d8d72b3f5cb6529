"""A release can change its kind: no pod of the previous kind counts as one of the next."""

from __future__ import annotations

import itertools

import pytest

from symphony_charts.kinds.registry import KINDS
from tests.chart.harness import chart_of, experiment_of, native_objects

_PROCESSES = {"learner": {"command": ["x"], "binds": "ps"}, "actor": {"command": ["x"], "connects": "ps"}}


def run_under(kind: str) -> str:
    """Return the run of one experiment under a kind, by the selector of its Service."""
    chart = chart_of(experiment_of(processes=_PROCESSES, workload={"kind": kind}))
    service = native_objects(chart)["Service", "r1-exp-ps"]["spec"]
    return str(service["selector"])  # type: ignore[index]  # parsed JSON


@pytest.mark.parametrize("kind", KINDS)
def test_the_readme_says_what_runs_the_processes(kind: str) -> None:
    readme = chart_of(experiment_of(processes=_PROCESSES, workload={"kind": kind})).files["README.md"].decode()
    (row,) = [line for line in readme.splitlines() if line.startswith("| `actor`")]
    assert ("| Job |" in row) == (kind == "jobs")
    assert ("The cluster needs " in readme) == (kind != "jobs")


@pytest.mark.parametrize(("before", "after"), [*itertools.combinations(KINDS, 2)])
def test_another_kind_is_another_run(before: str, after: str) -> None:
    assert run_under(before) != run_under(after)
