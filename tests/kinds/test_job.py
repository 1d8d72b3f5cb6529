"""Jobs and StatefulSets say what the API server lets change, and retry each replica by itself."""

from __future__ import annotations

from typing import Any

import pytest

from symphony_charts.errors import SpecError
from symphony_charts.kinds.group import Group
from symphony_charts.kinds.job import job_fields
from symphony_charts.kinds.service import stateful_set
from symphony_charts.kinds.table import rows
from tests.chart.harness import chart_of, experiment_of


def group(replicas: int = 1, **facts: Any) -> Group:
    """A finite group."""
    return Group(
        name="g",
        values={},
        replicas=replicas,
        is_finite=True,
        keep=False,
        base="r-g",
        unit="r",
        member="g",
        workload_pattern="r-g-{run}",
        pod_pattern="r-g-{run}-{index}",
        **facts,
    )


def fields_of(one: Group, containers: int = 1, deadline: int | None = None) -> dict[str, Any]:
    """The fields of its Job but that for evictions, whose pods have so many containers."""
    made = job_fields(one, {"spec": {"containers": [{}] * containers}}, deadline=deadline)
    return {key: value for key, value in made.items() if key != "podFailurePolicy"}


def test_a_pod_without_retries_is_tried_once() -> None:
    assert fields_of(group()) == {"backoffLimit": 0}


def test_a_lone_pod_is_an_index_too_where_it_is_retried_so_that_it_learns_how_often() -> None:
    fields = {"completionMode": "Indexed", "completions": 1, "parallelism": 1}
    assert fields_of(group(retries=3)) == {**fields, "backoffLimitPerIndex": 3, "maxFailedIndexes": 0}


def test_replicas_are_indexes_that_are_retried_one_by_one() -> None:
    assert fields_of(group(4, retries=3), deadline=60) == {
        "completionMode": "Indexed",
        "completions": 4,
        "parallelism": 4,
        "backoffLimitPerIndex": 3,
        "maxFailedIndexes": 0,
        "activeDeadlineSeconds": 60,
    }


def test_replicas_without_retries_end_the_job_with_the_first_failure() -> None:
    fields = fields_of(group(4))
    assert (fields["backoffLimit"], "backoffLimitPerIndex" in fields) == (0, False)


def test_restarts_in_place_are_counted_together_and_ended_at_the_one_too_many() -> None:
    assert fields_of(group(retries=3, restart="OnFailure")) == {"backoffLimit": 4}
    assert fields_of(group(4, retries=3, restart="OnFailure"), containers=2)["backoffLimit"] == 25


def test_a_number_of_restarts_is_one_that_kubernetes_takes() -> None:
    assert fields_of(group(4, retries=2**31 - 1, restart="OnFailure"))["backoffLimit"] == 2**31 - 1


@pytest.mark.parametrize(("restart", "is_said"), [("Never", True), ("OnFailure", False)])
def test_evictions_are_no_failures_where_kubernetes_lets_a_job_say_so(restart: str, is_said: bool) -> None:
    made = job_fields(group(retries=1, restart=restart), {"spec": {"containers": [{}]}}, deadline=None)
    assert ("DisruptionTarget" in str(made.get("podFailurePolicy"))) == is_said


def test_what_can_change_in_place_is_not_called_immutable() -> None:
    fixed = rows()["jobs"].fixed
    assert fixed
    assert fixed.isdisjoint({"parallelism", "backoffLimit", "activeDeadlineSeconds"})
    assert "podFailurePolicy" in fixed


def test_a_stateful_set_starts_all_pods_at_once_behind_its_service() -> None:
    spec = stateful_set(group(2), {"name": "r-g"}, {}, {"a": "b"})["spec"]
    assert isinstance(spec, dict)
    assert (spec["serviceName"], spec["podManagementPolicy"], spec["replicas"]) == ("r-g-pods", "Parallel", 2)


def test_a_job_set_begins_again_a_number_of_times() -> None:
    workload = {"kind": "jobset", "jobset": {"max_restarts": -1}}
    with pytest.raises(SpecError) as caught:
        chart_of(experiment_of(processes={"a": {"command": ["x"]}}, workload=workload))
    assert [problem.path for problem in caught.value.problems] == ["workload.jobset.max_restarts"]
