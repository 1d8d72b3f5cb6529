"""The test cluster and the fixtures of every end-to-end test.

With KUBECONFIG set, the tests run against that cluster, and those that need the rig's own nodes are skipped. Without
it, the session starts a cluster of its own; under xdist the controlling process does, and the workers share it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.charts import ExampleCharts
from tests.e2e.programs import Programs
from tests.e2e.release import Release, describe
from tests.e2e.rig.api import Api
from tests.e2e.rig.cluster import Cluster
from tests.tools import HELM_VERSIONS, helm, kubectl, unpack_all
from tests.waiting import eventually

_FOREIGN = os.environ.get("KUBECONFIG", "")
_SHARED = "SYMPH_E2E_CLUSTER"
_STATE = pytest.StashKey[Cluster]()


def pytest_configure(config: pytest.Config) -> None:
    """Register the marks; in the controlling process of xdist, start the cluster that the workers share."""
    config.addinivalue_line("markers", "rig: needs the rig's own nodes, which run containers as processes here")
    is_controller = not hasattr(config, "workerinput") and bool(getattr(config.option, "numprocesses", None))
    if is_controller and not _FOREIGN and not config.option.collectonly:
        cluster = config.stash[_STATE] = _start()
        os.environ[_SHARED] = str(cluster.folder)


def pytest_unconfigure(config: pytest.Config) -> None:
    if _STATE in config.stash:
        _stop(config.stash[_STATE])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark everything here as e2e; skip tests that need the rig on a foreign cluster."""
    for item in items:
        item.add_marker(pytest.mark.e2e)
        if _FOREIGN and item.get_closest_marker("rig"):
            item.add_marker(pytest.mark.skip(reason="needs the rig's own nodes; KUBECONFIG names another cluster"))


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
def cluster() -> Iterator[Cluster | None]:
    """Yield the rig's cluster, or None if KUBECONFIG names another."""
    shared = os.environ.get(_SHARED)
    if _FOREIGN:
        yield None
    elif shared:
        yield Cluster(folder=Path(shared))
    else:
        own = _start()
        yield own
        _stop(own)


@pytest.fixture(scope="session")
def programs(cluster: Cluster | None, tmp_path_factory: pytest.TempPathFactory) -> Programs:
    unpack_all()
    found = kubectl() or Path(shutil.which("kubectl") or "")
    if not found.is_file():
        pytest.fail("no kubectl: python -m tests.tools says what to install")
    kubeconfig = cluster.kubeconfig if cluster else Path(_FOREIGN).resolve()
    return Programs(kubeconfig=kubeconfig, home=tmp_path_factory.mktemp("home"), kubectl_path=found)


@pytest.fixture(scope="session")
def api(cluster: Cluster | None, programs: Programs) -> Iterator[Api]:
    """Yield a client of the cluster; through kubectl for a foreign cluster, whose credentials may take many forms."""
    if cluster:
        with cluster.api() as client:
            yield client
        return
    argv = [str(programs.kubectl_path), "proxy", "--port=0"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=dict(programs.environment())) as proxy:
        assert proxy.stdout
        address = proxy.stdout.readline().rpartition(" ")[2].strip()
        config = programs.home / "proxy.kubeconfig"
        config.write_text(_PROXY_CONFIG.format(address=address))
        with Api(config) as client:
            yield client
        proxy.terminate()


_PROXY_CONFIG = """
clusters: [{{name: proxy, cluster: {{server: "http://{address}"}}}}]
users: [{{name: none, user: {{}}}}]
contexts: [{{name: proxy, context: {{cluster: proxy, user: none}}}}]
current-context: proxy
"""


@pytest.fixture
def namespace(programs: Programs) -> Iterator[str]:
    """Yield a namespace of this test; do not wait for its deletion."""
    name = f"e2e-{uuid.uuid4().hex[:8]}"
    meta = {"name": name, "labels": {"symph.dev/e2e": "true"}}
    programs.kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": meta}))
    # Controllers make them a moment later: pods need the one, and comparisons of all objects count the other.
    kubectl = str(programs.kubectl_path)
    made_by_controllers = [kubectl, "-n", name, "get", "serviceaccount/default", "configmap/kube-root-ca.crt"]
    eventually(lambda: programs.try_run(made_by_controllers).code == 0, 60, f"{name} is not ready to be used")
    yield name
    programs.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture(params=HELM_VERSIONS)
def any_helm(request: pytest.FixtureRequest) -> Path:
    return _helm(request.param)


@pytest.fixture
def release(programs: Programs, api: Api, namespace: str) -> Callable[..., Release]:
    """Return a factory of releases in the test's namespace: ``release("ring")``, by default with the newest helm."""

    def make(name: str, helm_path: Path | None = None) -> Release:
        path = helm_path or _helm(HELM_VERSIONS[-1])
        return Release(name=name, namespace=namespace, helm_path=path, programs=programs, api=api)

    return make


@pytest.fixture(scope="session")
def charts(tmp_path_factory: pytest.TempPathFactory) -> ExampleCharts:
    return ExampleCharts(tmp_path_factory.mktemp("charts"))


def _helm(version: str) -> Path:
    path = helm(version)
    if path is None:
        pytest.fail(f"no helm {version}: python -m tests.tools says what to install")
    return path


def _start() -> Cluster:
    cluster = Cluster(folder=Path(tempfile.mkdtemp(prefix="symph-e2e-")) / "cluster")
    cluster.up(dies_with_us=True)
    return cluster


def _stop(cluster: Cluster) -> None:
    cluster.down()
    shutil.rmtree(cluster.folder.parent, ignore_errors=True)
