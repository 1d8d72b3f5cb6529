"""A separate cluster, on which JobSets, AppWrappers, Kueue and Kubernetes' own gang scheduling work.

Kueue acts on every Job and pod of its cluster, so the tests that run in parallel cannot share one with it.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.operators import JOBSET_OPERATOR, KUEUE_OPERATOR, start_appwrapper, start_operator
from tests.e2e.programs import Programs, Symph
from tests.e2e.rig.cluster import Cluster
from tests.tools import kubectl, newest_helm, unpack_all


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    own = Cluster(folder=Path(tempfile.mkdtemp(prefix="symph-e2e-")) / "cluster")
    try:
        own.up(dies_with_us=True, gangs=True)
        yield own
    finally:
        own.down()
        shutil.rmtree(own.folder.parent, ignore_errors=True)


@pytest.fixture(scope="session")
def programs(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Programs:
    """Return helm and kubectl for the cluster where the operators run."""
    unpack_all()
    kubectl_path = kubectl()
    assert kubectl_path
    found = Programs(kubeconfig=cluster.kubeconfig, home=tmp_path_factory.mktemp("home"), kubectl_path=kubectl_path)
    start_appwrapper(cluster.folder, found)
    for operator in (JOBSET_OPERATOR, KUEUE_OPERATOR):
        start_operator(operator, cluster.folder, found, newest_helm())
    return found


@pytest.fixture
def symph(programs: Programs, namespace: str) -> Symph:
    return lambda *words: programs.symph(*words, "-n", namespace, env={"HELM_BIN": str(newest_helm())})
