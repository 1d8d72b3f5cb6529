"""A coordinator of operator v0 finds a local server that lends it the replicas of its run and takes them back.

The coordinator sends the requests of DI-engine's own (ding/worker/coordinator/operator_server.py at v0.2.3): address
and its own name from the variables, bodies without a content type, a failed replica named by its host without the
last label.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from symphony_charts.integrations.dijob.server import DELETED, TABLE, server_of
from symphony_charts.local import up
from symphony_charts.local.machine.machine import plan_here
from symphony_charts.local.runs import Run
from symphony_charts.spec.data import from_data
from symphony_charts.spec.pods import allocate
from tests.local.runs import log_of, python, start, until

# Listens as a replica does, and reports each start.
REPLICA = """
import os, socket
role = os.environ["ROLE"]
server = socket.create_server((os.environ[f"SYMPH_{role}_BIND_HOST"], int(os.environ[role + "_PORT"])))
print("listens", flush=True)
while True:
    server.accept()[0].close()
"""


def replica(role: str, **more: object) -> dict[str, object]:
    port = {"collector": 22270, "learner": 22271}[role]
    return python(REPLICA, env={"ROLE": role.upper()}, lifecycle="service", binds={role: port}, **more)


def job(**more: object) -> dict[str, Any]:
    processes = {
        "coordinator": {"command": ["sleep", "300"]},
        "collector": replica("collector", replicas=2),
        "learner": replica("learner"),
        **more,
    }
    workload = {"kind": "dijob", "dijob": {"operator": "v0"}}
    return {"processes": processes, "done_when": ["coordinator"], "workload": workload}


class Server:
    """A server, with requests as a coordinator sends them."""

    def __init__(self, folder: Path) -> None:
        table = json.loads((folder / TABLE).read_text())
        self.address = (table["host"], table["port"])
        self.restarted: list[int] = []

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, dict[str, Any]]:
        connection = http.client.HTTPConnection(*self.address, timeout=30)
        with contextlib.closing(connection):
            connection.request(method, path, None if body is None else json.dumps(body))
            reply = connection.getresponse()
            return reply.status, json.loads(reply.read() or b"{}")

    def post(self, path: str = "", method: str = "POST", **roles: object) -> tuple[int, dict[str, Any]]:
        who = {"namespace": "default", "coordinator": "coordinator"}
        return self.ask(method, f"/v1alpha1/replicas{path}", {**who, **roles})

    def listed(self) -> dict[str, Any]:
        status, reply = self.ask("GET", "/v1alpha1/replicas?namespace=default&coordinator=coordinator")
        assert (status, reply["success"], reply["code"]) == (200, True, 0)
        return dict(reply["data"])


@pytest.fixture
def run(tmp_path: Path, here: None) -> Iterator[Run]:
    started = start(tmp_path, **job())
    until(lambda: all("listens" in log_of(started, name) for name in ("collector-0", "collector-1", "learner")))
    yield started
    if started.is_live:
        up.down(started)


def starts(run: Run, name: str) -> int:
    return log_of(run, name).count("listens")


def test_replicas_are_given_taken_back_given_again_and_replaced(run: Run) -> None:
    server = Server(run.folder)
    until(lambda: answers(server))
    assert server.listed() == {"namespace": "default", "coordinator": "coordinator", "collectors": [], "learners": []}
    status, reply = server.post(collectors={"replicas": 2}, learners={"replicas": 1, "gpus": "1", "memory": "1Gi"})
    given = reply["data"]
    assert (status, reply["message"], len(given["collectors"])) == (200, "successfully create replicas", 2)
    assert server.listed() == given
    assert [url.rpartition(":")[2] for url in (*given["collectors"], *given["learners"])] == ["22270", "22270", "22271"]
    # One is taken back: its program ends, and waits.
    status, reply = server.post(method="DELETE", collectors={"replicas": 1})
    assert (status, reply["data"]["collectors"]) == (200, given["collectors"][:1])
    assert server.listed()["collectors"] == given["collectors"][1:]
    until(lambda: "waiting for the next request" in log_of(run, "collector-0"))
    assert starts(run, "collector-0") == 1
    # The coordinator asks for it again.
    assert server.post(collectors={"replicas": 1})[1]["data"]["collectors"] == given["collectors"][:1]
    until(lambda: starts(run, "collector-0") == 2)
    # The coordinator reports a failed replica by its pod.
    status, reply = server.post("/failed", learners=["learner", "learner"])
    assert (status, reply["data"]["learners"]) == (200, given["learners"])
    until(lambda: starts(run, "learner") == 2)
    assert len(server.listed()["collectors"]) == 2
    assert run.state().phase == "running"


def answers(server: Server) -> bool:
    try:
        return server.ask("GET", "/healthz")[0] == 200
    except OSError:
        return False


def test_a_server_that_starts_again_knows_what_it_has_given_and_ends_with_the_run(run: Run) -> None:
    server = Server(run.folder)
    until(lambda: answers(server))
    given = server.post(collectors={"replicas": 2})[1]["data"]
    server.post(method="DELETE", collectors={"replicas": 1})
    (slot,) = (process.slot for process in run.plan().processes if process.name == "di-server")
    up.restart(run, [slot])
    until(lambda: answers(server))
    assert server.listed()["collectors"] == given["collectors"][1:]
    up.down(run)
    assert not answers(server)


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Server]:
    """Provide a server without a run: its replicas do not listen, and its restarts are in `restarted`."""
    rows = [("collector-0", "collector", 1), ("collector-1", "collector", 2), ("learner", "learner", 3)]
    replicas = [
        {"pod": pod, "namespace": "default", "role": role, "slots": [slot], "url": f"127.0.7.{slot}:22270"}
        for pod, role, slot in rows
    ]
    coordinator = {"pod": "coordinator", "namespace": "default"}
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    table = {"host": "127.0.0.1", "port": port, "coordinators": [coordinator], "replicas": replicas}
    (tmp_path / DELETED).mkdir(parents=True)
    (tmp_path / TABLE).write_text(json.dumps(table))
    server = Server(tmp_path)
    with server_of(tmp_path, server.restarted.extend) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        yield server
        serving.shutdown()
        thread.join()


def test_what_it_refuses_it_answers_as_the_operator_does(alone: Server) -> None:
    path = "/v1alpha1/replicas"
    assert alone.ask("POST", path, {"namespace": "default", "coordinator": "not-there"})[0] == 404
    assert alone.ask("POST", path, {"namespace": "elsewhere", "coordinator": "coordinator"})[0] == 404
    assert alone.ask("GET", f"{path}?pod=x")[0] == 400
    assert alone.ask("PATCH", path, {})[0] == 501
    assert alone.post(collectors={"replicas": "two"})[0] == 400
    assert alone.post(collectors=[1])[0] == 400
    status, reply = alone.post("/failed", collectors=["nobody"])
    assert (status, reply["success"], reply["code"]) == (404, False, 1)
    assert "nobody not exists" in reply["message"]
    status, reply = alone.post(collectors={"replicas": 1}, learners={"replicas": 2})
    assert status == 500
    assert "set `replicas` of learner" in reply["message"]
    assert alone.post(learners={"replicas": 1, "gpus": "2"})[0] == 501
    # All replicas were taken back.
    assert alone.listed()["collectors"] == []
    everywhere = alone.ask("GET", path)[1]["data"]
    assert everywhere == alone.ask("GET", f"{path}?namespace=default")[1]["data"] == [alone.listed()]
    assert alone.ask("GET", f"{path}?namespace=elsewhere")[1]["data"] == []


def test_a_body_with_any_request_leaves_the_connection_in_order(alone: Server) -> None:
    with contextlib.closing(http.client.HTTPConnection(*alone.address, timeout=30)) as connection:
        for _ in range(2):
            connection.request("GET", "/v1alpha1/replicas?namespace=default&coordinator=coordinator", "{}")
            assert json.loads(connection.getresponse().read())["success"] is True


def test_a_replica_named_by_the_beginning_of_its_address_is_one_at_which_nobody_answers(alone: Server) -> None:
    alone.post(collectors={"replicas": 2})
    with socket.create_server(("127.0.7.2", 22270)):
        status, reply = alone.post("/failed", collectors=["127.0.7"])
    assert (status, reply["data"]["collectors"]) == (200, ["127.0.7.1:22270"])
    assert alone.restarted == [1]


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.update(workload={"kind": "dijob", "dijob": {"operator": "v1.1"}}),
        lambda data: data.update(workload={}),
        lambda data: data["processes"]["coordinator"].update(env={"KUBERNETES_SERVER_URL": "mine:1"}),
        lambda data: data.update(local={"env": {"KUBERNETES_SERVER_URL": "mine:1"}}),
    ],
)
def test_nobody_else_gets_a_server(change: Callable[[dict[str, Any]], None], tmp_path: Path) -> None:
    data = job()
    change(data)
    experiment = from_data({"name": "exp", **data})
    plan = plan_here(experiment, allocate(experiment), tmp_path, "r")
    assert not [process for process in plan.processes if process.name == "di-server"]
    assert not [process for process in plan.processes if process.enter]


def test_a_view_for_other_runners_has_none(tmp_path: Path) -> None:
    experiment = from_data({"name": "exp", **job()})
    plan = plan_here(experiment, allocate(experiment), tmp_path, "render", run_dir=tmp_path / "out")
    assert [process.name for process in plan.processes] == ["coordinator", "collector-0", "collector-1", "learner"]


def test_the_variables_are_those_of_the_operator(tmp_path: Path) -> None:
    experiment = from_data({"name": "exp", **job()})
    plan = plan_here(experiment, allocate(experiment), tmp_path, "r")
    told = {process.name: process.env for process in plan.processes}
    address = next(process.address for process in plan.processes if process.name == "di-server")
    for name in ("coordinator", "collector-0", "learner"):
        assert told[name]["KUBERNETES_SERVER_URL"].startswith(f"{address}:")
        assert told[name]["KUBERNETES_POD_NAME"] == name
        assert told[name]["KUBERNETES_POD_NAMESPACE"] == "default"
        assert not [variable for variable in told[name] if "DI_SERVER" in variable]
    assert sys.executable in next(process.argv for process in plan.processes if process.name == "di-server")
