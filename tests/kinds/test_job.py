"""Jobs and StatefulSets say what the API server lets change, and retry each replica by itself."""

from __future__ import annotations

import pytest

from symphony_charts.errors import SpecError
from symphony_charts.kinds.group import Group
from symphony_charts.kinds.job import job_fields
from symphony_charts.kinds.service import stateful_set
from symphony_charts.kinds.table import rows
from tests.chart.harness import chart_of, experiment_of


def group(replicas: int = 1, **values: object) -> Group:
    """A finite group."""
    return Group(
        name="g",
        values=values,
        replicas=replicas,
        is_finite=True,
        keep=False,
        base="r-g",
        unit="r",
        member="g",
        workload_pattern="r-g-{run}",
        pod_pattern="r-g-{run}-{index}",
    )


def test_a_lone_pod_counts_its_retries() -> None:
    assert job_fields(group(), retries=3, deadline=None) == {"backoffLimit": 3}


def test_replicas_are_indexes_that_are_retried_one_by_one() -> None:
    fields = job_fields(group(4), retries=3, deadline=60)
    assert fields == {
        "completionMode": "Indexed",
        "completions": 4,
        "parallelism": 4,
        "backoffLimitPerIndex": 3,
        "maxFailedIndexes": 0,
        "activeDeadlineSeconds": 60,
    }


@pytest.mark.parametrize(("retries", "restart"), [(0, "Never"), (3, "OnFailure")])
def test_kubernetes_counts_indexes_only_for_pods_that_are_not_restarted(retries: int, restart: str) -> None:
    fields = job_fields(group(4, restartPolicy=restart), retries=retries, deadline=None)
    assert fields["backoffLimit"] == retries
    assert "backoffLimitPerIndex" not in fields


def test_what_can_change_in_place_is_not_called_immutable() -> None:
    fixed = rows()["jobs"].fixed
    assert fixed
    assert fixed.isdisjoint({"parallelism", "backoffLimit", "activeDeadlineSeconds"})


def test_a_stateful_set_starts_all_pods_at_once_behind_its_service() -> None:
    spec = stateful_set(group(2), {"name": "r-g"}, {}, {"a": "b"})["spec"]
    assert isinstance(spec, dict)
    assert (spec["serviceName"], spec["podManagementPolicy"], spec["replicas"]) == ("r-g-pods", "Parallel", 2)


def test_a_job_set_begins_again_a_number_of_times() -> None:
    workload = {"kind": "jobset", "jobset": {"max_restarts": -1}}
    with pytest.raises(SpecError) as caught:
        chart_of(experiment_of(processes={"a": {"command": ["x"]}}, workload=workload))
    assert [problem.path for problem in caught.value.problems] == ["workload.jobset.max_restarts"]
