"""A separate cluster, on which JobSets, AppWrappers, Kueue and Kubernetes' own gang scheduling work.

Kueue acts on every Job and pod of its cluster, so the tests that run in parallel cannot share one with it.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.e2e.operators import JOBSET_OPERATOR, KUEUE_OPERATOR, start_appwrapper, start_operator
from tests.e2e.programs import Output, Programs
from tests.e2e.rig.cluster import Cluster
from tests.tools import HELM_VERSIONS, helm, kubectl, unpack_all

Symph: TypeAlias = Callable[..., Output]


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
    kubectl_path, helm_path = kubectl(), helm(HELM_VERSIONS[-1])
    assert kubectl_path
    assert helm_path
    found = Programs(kubeconfig=cluster.kubeconfig, home=tmp_path_factory.mktemp("home"), kubectl_path=kubectl_path)
    start_appwrapper(cluster.folder, found)
    for operator in (JOBSET_OPERATOR, KUEUE_OPERATOR):
        start_operator(operator, cluster.folder, found, helm_path)
    return found


@pytest.fixture
def symph(programs: Programs, namespace: str) -> Symph:
    return lambda *words: programs.symph(*words, "-n", namespace, env={"HELM_BIN": str(helm(HELM_VERSIONS[-1]))})
