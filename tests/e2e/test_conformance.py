"""The conformance suite on a real API server, once with helm and once by server-side apply."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from symphony_charts.clusters.kubernetes import KubeCluster
from symphony_charts.settings.user import SymphonyConfig
from tests.clusters.conformance import (
    ConformanceOfChanges,
    ConformanceOfFiles,
    ConformanceOfLogs,
    ConformanceOfStates,
    Place,
)
from tests.e2e.programs import Programs
from tests.tools import HELM_VERSIONS, helm


@pytest.fixture(params=["helm", "apply"])
def place(
    request: pytest.FixtureRequest, programs: Programs, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Place]:
    """Yield a namespace of the cluster; the first has helm, the second has not."""
    for name, value in programs.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("symphony_charts.kubernetes.releases.helm_client.shutil.which", _nowhere)
    if request.param == "helm":
        monkeypatch.setenv("HELM_BIN", str(helm(HELM_VERSIONS[-1])))
    cluster = KubeCluster(namespace=namespace)
    yield Place(cluster=cluster, flags=("-n", namespace), env=dict(os.environ))
    SymphonyConfig.reset()
    cluster.watcher.api.close()


def _nowhere(_program: str) -> None:
    return None


class TestStates(ConformanceOfStates):
    """States on Kubernetes."""


class TestLogs(ConformanceOfLogs):
    """Logs on Kubernetes."""


class TestFiles(ConformanceOfFiles):
    """Files on Kubernetes."""


class TestChanges(ConformanceOfChanges):
    """Changes on Kubernetes."""
