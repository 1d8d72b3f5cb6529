"""A Job retries each replica separately, up to the experiment's number of retries."""

from __future__ import annotations

from typing import Any

import pytest

from symphony_charts.errors import SpecError
from tests.chart.harness import chart_of, experiment_of, native_objects

ONE = {"completionMode": "Indexed", "completions": 1, "parallelism": 1}
FOUR = {"completionMode": "Indexed", "completions": 4, "parallelism": 4}
THREE_EACH = {"backoffLimitPerIndex": 3, "maxFailedIndexes": 0}


def job_of(containers: int = 1, **group: Any) -> dict[str, Any]:
    """Return the spec of the Job of a group of processes, without its template."""
    processes = {f"p{number}": {"command": ["x"]} for number in range(containers)}
    objects = native_objects(chart_of(experiment_of(groups={"g": {"processes": processes, **group}})))
    (spec,) = [item["spec"] for (kind, _), item in objects.items() if kind == "Job"]
    return {key: value for key, value in spec.items() if key != "template"}  # type: ignore[attr-defined]  # parsed JSON


@pytest.mark.parametrize(
    ("containers", "group", "fields"),
    [
        (1, {}, {**ONE, "backoffLimitPerIndex": 0, "maxFailedIndexes": 0}),
        (1, {"replicas": 4, "retries": 3, "deadline": 60}, {**FOUR, **THREE_EACH, "activeDeadlineSeconds": 60}),
        # Kubernetes counts all restarts in place together, and ends the Job while the last one runs.
        (2, {"replicas": 4, "retries": 3, "restart": "on-failure"}, {**FOUR, "backoffLimit": 4}),
    ],
)
def test_a_job_retries_as_often_as_the_spec_says(
    containers: int, group: dict[str, Any], fields: dict[str, Any]
) -> None:
    made = job_of(containers, **group)
    made.pop("podFailurePolicy", None)
    assert made == fields


@pytest.mark.parametrize(("restart", "is_set"), [("never", True), ("on-failure", False)])
def test_evictions_are_no_failures_unless_pods_are_restarted_in_place(restart: str, is_set: bool) -> None:
    assert ("DisruptionTarget" in str(job_of(retries=1, restart=restart).get("podFailurePolicy"))) == is_set


def test_a_job_set_begins_again_a_number_of_times() -> None:
    workload = {"kind": "jobset", "jobset": {"max_restarts": -1}}
    with pytest.raises(SpecError) as caught:
        chart_of(experiment_of(processes={"a": {"command": ["x"]}}, workload=workload))
    assert [problem.path for problem in caught.value.problems] == ["workload.jobset.max_restarts"]
