"""Visible experiments when the cluster refuses or fails."""

from __future__ import annotations

import json
from typing import cast

import pytest

from symphony_charts.errors import SymphError, ToolFailed
from symphony_charts.kubernetes.client import KubeApi, Object
from symphony_charts.kubernetes.connection import failure_of
from symphony_charts.kubernetes.experiments import POD, KubeExperiments

HERE: Object = {"metadata": {"name": "here", "namespace": "mine"}}
EVERYWHERE: list[Object] = [HERE, {"metadata": {"name": "there", "namespace": "others"}}]


class Cluster:
    """A stub for a cluster whose next answer to a query of all namespaces is a failure."""

    namespace = "mine"

    def __init__(self, status: int) -> None:
        self.failures: list[SymphError] = [failure_of(status, json.dumps({"message": "no"}).encode(), "pods")]

    def collection(self, api_version: str, kind: str, namespace: str | None) -> str:
        return namespace or "*"

    def listed(self, path: str, selector: str = "", *, metadata_only: bool = False) -> list[Object]:
        if self.failures and (path == "*" or metadata_only):
            raise self.failures.pop()
        return EVERYWHERE if path == "*" else [HERE]


def seen_by(cluster: Cluster) -> KubeExperiments:
    return KubeExperiments(api=cast("KubeApi", cluster))


def names(items: list[Object]) -> list[str]:
    return [item["metadata"]["name"] for item in items]


def test_who_may_not_read_all_namespaces_sees_the_own_one() -> None:
    experiments = seen_by(Cluster(403))
    assert [names(experiments.listed(*POD, "")) for _ in range(2)] == [["here"], ["here"]]


@pytest.mark.parametrize("status", [401, 429, 500, 504])
def test_a_cluster_that_fails_once_narrows_no_later_look(status: int) -> None:
    experiments = seen_by(Cluster(status))
    with pytest.raises(ToolFailed):
        experiments.listed(*POD, "")
    assert names(experiments.listed(*POD, "")) == ["here", "there"]


def test_a_release_counts_as_absent_only_for_who_may_not_read_it() -> None:
    assert seen_by(Cluster(403)).releases("rl", "mine") == []
    with pytest.raises(ToolFailed):
        seen_by(Cluster(500)).releases("rl", "mine")
