"""The test cluster and the fixtures of every end-to-end test.

The session starts a cluster of its own; under xdist the controlling process does, and the workers share it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from symphony_charts.settings.user import SymphonyConfig
from tests.e2e.charts import ExampleCharts
from tests.e2e.programs import Programs
from tests.e2e.release import Release, Releases, describe
from tests.e2e.rig.api import Api
from tests.e2e.rig.cluster import Cluster
from tests.tools import HELM_VERSIONS, helm, kubectl, newest_helm, unpack_all
from tests.waiting import eventually

_SHARED = "SYMPH_E2E_CLUSTER"
_STATE = pytest.StashKey[Cluster]()


def pytest_configure(config: pytest.Config) -> None:
    """In the controlling process of xdist, start the cluster that the workers share."""
    is_controller = not hasattr(config, "workerinput") and bool(getattr(config.option, "numprocesses", None))
    if is_controller and not config.option.collectonly:
        cluster = config.stash[_STATE] = _start()
        os.environ[_SHARED] = str(cluster.folder)


def pytest_unconfigure(config: pytest.Config) -> None:
    if _STATE in config.stash:
        _stop(config.stash[_STATE])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(pytest.mark.e2e)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Add the events of the test's namespace to the report of a failure."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]  # pluggy's Result, untyped in a wrapper's yield
    place = getattr(item, "funcargs", {}).get("namespace")
    programs = getattr(item, "funcargs", {}).get("programs")
    if report.when == "call" and report.failed and place and programs:
        report.sections.append((f"namespace {place}", describe(programs, place)))


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    shared = os.environ.get(_SHARED)
    if shared:
        yield Cluster(folder=Path(shared))
    else:
        own = _start()
        yield own
        _stop(own)


@pytest.fixture(scope="session")
def programs(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Programs:
    unpack_all()
    found = kubectl()
    if not found:
        pytest.fail("no kubectl: python -m tests.tools says what to install")
    return Programs(kubeconfig=cluster.kubeconfig, home=tmp_path_factory.mktemp("home"), kubectl_path=found)


@pytest.fixture(scope="session")
def api(cluster: Cluster) -> Iterator[Api]:
    with cluster.api() as client:
        yield client


@pytest.fixture
def namespace(programs: Programs) -> Iterator[str]:
    """Yield a namespace of this test; do not wait for its deletion."""
    name = f"e2e-{uuid.uuid4().hex[:8]}"
    programs.kubectl("create", "namespace", name)
    # Controllers make them a moment later: pods need the one, and comparisons of all objects count the other.
    kubectl = str(programs.kubectl_path)
    made_by_controllers = [kubectl, "-n", name, "get", "serviceaccount/default", "configmap/kube-root-ca.crt"]
    eventually(lambda: programs.try_run(made_by_controllers).code == 0, 60, f"{name} is not ready to be used")
    yield name
    programs.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture(params=HELM_VERSIONS)
def any_helm(request: pytest.FixtureRequest) -> Path:
    path = helm(request.param)
    assert path, f"no helm {request.param}: python -m tests.tools says what to install"
    return path


@pytest.fixture
def as_user(programs: Programs, monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Give this process a user's environment with the cluster's kubeconfig, without helm unless HELM_BIN is set.

    No test may change the kubeconfig.
    """
    for name, value in programs.environment().items():
        monkeypatch.setenv(name, value)
    found = "symphony_charts.kubernetes.releases.helm_client.shutil.which"
    monkeypatch.setattr(found, lambda program: program if "/" in program else None)
    before = programs.kubeconfig.read_bytes()
    yield monkeypatch
    SymphonyConfig.reset()
    assert programs.kubeconfig.read_bytes() == before


@pytest.fixture
def release(programs: Programs, api: Api, namespace: str) -> Releases:

    def make(name: str, helm_path: Path | None = None) -> Release:
        path = helm_path or newest_helm()
        return Release(name=name, namespace=namespace, helm_path=path, programs=programs, api=api)

    return make


@pytest.fixture(scope="session")
def charts(tmp_path_factory: pytest.TempPathFactory) -> ExampleCharts:
    return ExampleCharts(tmp_path_factory.mktemp("charts"))


def _start() -> Cluster:
    cluster = Cluster(folder=Path(tempfile.mkdtemp(prefix="symph-e2e-")) / "cluster")
    cluster.up(dies_with_us=True)
    return cluster


def _stop(cluster: Cluster) -> None:
    cluster.down()
    shutil.rmtree(cluster.folder.parent, ignore_errors=True)
