"""Targets of addresses: sidecars, ready replicas, names of the cluster, a load balancer that never comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.charts import ExampleCharts, package_data
from tests.e2e.programs import Programs
from tests.e2e.release import Release, describe
from tests.e2e.rig.cluster import Cluster

pytestmark = pytest.mark.rig

Releases = Callable[..., Release]

# Sends its index to each client.
_SERVE = """
import os, socket
server = socket.create_server((os.environ["SYMPH_API_BIND_HOST"], int(os.environ["SYMPH_API_PORT"])))
while True:
    connection, _ = server.accept()
    with connection:
        connection.sendall(os.environ["SYMPH_INDEX"].encode())
"""
# Prints the answers: 20 times of ADDR, then once of each of HOSTS.
_ASK = """
import os, socket, time

def ask(address):
    host, port = address.rsplit(":", 1)
    deadline = time.monotonic() + 30
    while True:
        try:
            with socket.create_connection((host, int(port)), 5) as connection:
                return connection.recv(9).decode()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)

heard = {ask(os.environ["SYMPH_API_ADDR"]) for _ in range(20)}
print(*sorted(heard), "of", *map(ask, os.environ["SYMPH_API_HOSTS"].split(",")))
"""


def _python(script: str) -> dict[str, object]:
    return {"command": ["python", "-c", script.replace("$", "$$")], "grace_period": 0}


def _experiment(**parts: object) -> dict[str, object]:
    return {"name": "exp", "image": "python:3.12-slim", **parts}


def test_each_replica_reaches_its_own_sidecar_and_those_of_the_others(release: Releases, tmp_path: Path) -> None:
    processes = {
        "cache": {"command": ["python", "-c", _SERVE], "binds": "api", "lifecycle": "service"},
        "main": {"command": ["python", "-c", f"{_ASK}\ntime.sleep(5)"], "connects": "api"},
    }
    groups = {"worker": {"replicas": 3, "grace_period": 1, "processes": processes}}
    run = release("exp")
    run.install(package_data(_experiment(groups=groups), tmp_path))
    run.wait_finished()
    assert sorted(run.log("worker", "main").splitlines()) == [f"{index} of 0 1 2" for index in range(3)]


def test_a_declared_check_keeps_clients_from_replicas_that_are_not_ready(release: Releases, tmp_path: Path) -> None:
    ready = {"exec": ["sh", "-c", '[ "$SYMPH_INDEX" = 0 ]'], "period": "1s"}
    server = {**_python(_SERVE), "binds": "api", "lifecycle": "service", "replicas": 2, "ready": ready}
    run = release("exp")
    processes = {"server": server, "client": {**_python(_ASK), "connects": "api"}}
    run.install(package_data(_experiment(processes=processes), tmp_path))
    run.wait_finished()
    assert run.log("client") == "0 of 0 1\n"


def test_pods_on_the_host_network_know_the_names_of_the_cluster(release: Releases, tmp_path: Path) -> None:
    server = {**_python(_SERVE), "binds": "api", "lifecycle": "service"}
    client = {**_python(_ASK), "connects": "api", "pod_overlay": {"spec": {"hostNetwork": True}}}
    run = release("exp")
    run.install(package_data(_experiment(processes={"server": server, "client": client}), tmp_path))
    run.wait_finished()
    assert run.log("client") == "0 of 0\n"


def test_shared_memory_has_its_size(release: Releases, tmp_path: Path) -> None:
    shm = {"type": "empty_dir", "memory": True, "size": "16Mi"}
    process = {
        "cmds": ["df -Pk /dev/shm | tail -1"],
        "limits": {"memory": "64Mi"},
        "mounts": [{"volume": "shm", "at": "/dev/shm"}],
    }
    run = release("exp")
    run.install(package_data(_experiment(volumes={"shm": shm}, processes={"a": process}), tmp_path))
    run.wait_finished()
    assert run.log("a").split()[1] == str(16 * 1024), describe(run.programs, run.namespace)


@pytest.fixture
def bare(tmp_path: Path, programs: Programs, any_helm: Path) -> Iterator[Release]:
    """Yield a release on its own cluster, whose LoadBalancers wait forever."""
    cluster = Cluster(folder=tmp_path / "cluster")
    cluster.up(has_load_balancers=False, dies_with_us=True)
    home = Programs(kubeconfig=cluster.kubeconfig, home=programs.home, kubectl_path=programs.kubectl_path)
    with cluster.api() as api:
        yield Release(name="rl", namespace="default", helm_path=any_helm, programs=home, api=api)
    cluster.down()


def test_an_experiment_ends_though_its_load_balancer_never_comes(bare: Release, charts: ExampleCharts) -> None:
    exposed_to_all = ("--set", "services.tensorboard.type=LoadBalancer")
    bare.install(charts["rl"], *exposed_to_all)
    bare.wait_finished()
    (exposed,) = [s for s in bare.objects("services") if s["spec"]["type"] == "LoadBalancer"]
    assert exposed["status"]["loadBalancer"] == {}
    assert "learner done" in bare.log("learner")
    bare.upgrade(charts["rl"], *exposed_to_all, "--set", "groups.learner.containers.learner.env.NOTE=again")
    bare.wait_finished()
    bare.uninstall()
    bare.wait_gone()
