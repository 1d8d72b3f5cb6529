"""The number of restarts of a failed pod, the same on every backend."""

from __future__ import annotations

import pytest

from symphony_charts.spec.data import from_data
from symphony_charts.spec.pods import pods_of, retries_of


@pytest.mark.parametrize(
    ("process", "workload", "retries"),
    [
        ({}, {}, 0),
        ({"restart": "on-failure"}, {}, 6),
        ({"restart": "on-failure", "retries": 2}, {}, 2),
        ({"restart": "on-failure", "retries": 0}, {}, 0),
        ({}, {"retries": 3}, 3),
        ({"restart": "on-failure"}, {"retries": 3}, 3),
    ],
)
def test_a_failed_pod_is_started_again_as_kubernetes_would(
    process: dict[str, object], workload: dict[str, object], retries: int
) -> None:
    data = {"name": "x", "processes": {"a": {"command": ["c"], **process}}, "workload": workload}
    experiment = from_data(data)
    assert retries_of(experiment, pods_of(experiment)["a"]) == retries
