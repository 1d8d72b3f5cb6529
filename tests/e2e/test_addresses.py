"""Targets of addresses: sidecars, ready replicas, names of the cluster, a load balancer that never comes."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.charts import ExampleCharts, package_data
from tests.e2e.release import Releases, describe

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


def test_an_experiment_ends_though_its_load_balancer_never_comes(release: Releases, charts: ExampleCharts) -> None:
    run = release("rl")
    waits = "services.tensorboard.type=LoadBalancer,services.tensorboard.loadBalancerClass=e2e.symph.dev/nobody"
    run.install(charts["rl"], "--set", waits)
    run.wait_finished()
    (exposed,) = [s for s in run.objects("services") if s["spec"]["type"] == "LoadBalancer"]
    assert exposed["status"]["loadBalancer"] == {}
    assert "learner done" in run.log("learner")
    run.upgrade(charts["rl"], "--set", waits, "--set", "groups.learner.containers.learner.env.NOTE=again")
    run.wait_finished()
    run.uninstall()
    run.wait_gone()
