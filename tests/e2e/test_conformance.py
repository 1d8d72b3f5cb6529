"""The conformance suite on a real API server by server-side apply; changes of experiments also with helm."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from symphony_charts.clusters.kubernetes import KubeCluster
from tests.clusters.conformance import Place, TestFiles, TestLogs, TestStates  # noqa: F401 - tried here
from tests.clusters.conformance import TestChanges as Changes
from tests.tools import newest_helm


@pytest.fixture
def place(request: pytest.FixtureRequest, as_user: pytest.MonkeyPatch, namespace: str) -> Iterator[Place]:
    """Yield a namespace of the cluster; there is helm if the parameter is true."""
    if getattr(request, "param", False):
        as_user.setenv("HELM_BIN", str(newest_helm()))
    cluster = KubeCluster(namespace=namespace)
    yield Place(cluster=cluster, flags=("-n", namespace), env=dict(os.environ))
    cluster.watcher.api.close()


@pytest.mark.parametrize("place", [False, True], ids=["apply", "helm"], indirect=True)
class TestChanges(Changes):
    """Changes on Kubernetes."""
