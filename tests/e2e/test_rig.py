"""The rig itself: what it leaves behind, what it is built from, and its pure parts."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from http.client import IncompleteRead, RemoteDisconnected
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TypeAlias

import pytest

from symphony_charts.errors import Conflict, NotFound, ToolFailed
from tests.e2e.charts import CHECKOUT
from tests.e2e.rig.api import Api, ApiError, Object
from tests.e2e.rig.cluster import Cluster
from tests.e2e.rig.control_plane import ControlPlane
from tests.e2e.rig.kubelet import agent as agents
from tests.e2e.rig.kubelet import container, network, pod
from tests.e2e.rig.kubelet.agent import Agent
from tests.e2e.rig.kubelet.logs import LogRequest, select_lines
from tests.e2e.rig.kubelet.reporter import Reporter
from tests.e2e.rig.kubelet.stand_ins import StandInServer, make_agent, make_pod, until, write_kubeconfig
from tests.e2e.rig.nodes import DEFAULT_POOLS, make_node, node_names, read_pools
from tests.e2e.rig.ports import free_ports
from tests.e2e.tools import build
from tests.e2e.tools.catalog import TOOLS
from tests.pages.blocks import blocks_of
from tests.tools import kubectl
from tests.waiting import eventually

_CACHE = build.cache_folder().parent.parent

# --- what stays behind -----------------------------------------------------------------------------------------------


def _links() -> set[str]:
    done = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True)
    return {line.split(": ")[1] for line in done.stdout.splitlines()}


def _running_below(folder: Path) -> list[str]:
    """Command lines that name `folder`, of processes that still run."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(folder) in words:
            found.append(words)
    return found


@pytest.mark.rig
def test_the_cluster_for_yourself_is_started_used_and_stopped_as_its_page_says(tmp_path: Path) -> None:
    (lines,) = [block.text for block in blocks_of(CHECKOUT / "docs/e2e.md") if block.rest == "tests/e2e/test_rig.py"]
    program = kubectl()
    assert program is not None
    folders = [str(Path(sys.executable).parent), str(program.parent), os.environ["PATH"]]
    places = {name: str(tmp_path / name.lower()) for name in ("HOME", "TMPDIR", "SYMPH_STATE_DIR")}
    for place in places.values():
        Path(place).mkdir()
    env = {"PATH": os.pathsep.join(folders), "LC_ALL": "C.UTF-8", **places}
    done = subprocess.run(
        ["bash", "-e", "-c", lines], cwd=CHECKOUT, env=env, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for words in ("export KUBECONFIG=", "pod/ring-p0-", "service/ring-ring-0", "kube-apiserver", "MiB"):
        assert words in done.stdout + done.stderr
    assert not _running_below(tmp_path)


@pytest.mark.rig
def test_a_stopped_cluster_leaves_no_process_mount_link_or_port(tmp_path: Path) -> None:
    links = _links()
    cluster = Cluster(folder=tmp_path / "cluster")
    cluster.up()
    with cluster.api() as api:
        container = {"name": "c", "image": "none:1", "command": ["sleep", "1000"]}
        pod = {"metadata": {"name": "stays"}, "spec": {"containers": [container]}}
        api.create("/api/v1/namespaces/default/pods", pod)
        address = api.address
        with pytest.raises(Conflict, match="running already"):
            cluster.up()
    _wait_for_container(cluster)
    cluster.down()
    assert _running_below(tmp_path) == []
    assert str(tmp_path) not in Path("/proc/self/mountinfo").read_text()
    assert _links() == links
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(address, timeout=2)


def _wait_for_container(cluster: Cluster) -> None:
    with cluster.api() as api:
        path = "/api/v1/namespaces/default/pods/stays"
        eventually(lambda: api.get(path)["status"]["phase"] == "Running", 60, lambda: str(api.get(path)["status"]))


def test_a_killed_owner_takes_its_cluster_along(tmp_path: Path) -> None:
    folder = tmp_path / "cluster"
    script = (
        "import os, signal; from pathlib import Path; from tests.e2e.rig.control_plane import ControlPlane\n"
        f"ControlPlane.up(Path({str(folder)!r}), dies_with_us=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", script], cwd=CHECKOUT, timeout=90, check=False)
    assert ControlPlane(folder=folder).daemons()
    eventually(lambda: not any(d.is_alive for d in ControlPlane(folder=folder).daemons()), 60, "they are gone")


# --- tools -----------------------------------------------------------------------------------------------------------


def test_building_again_compiles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(_CACHE))  # every test has a home of its own otherwise
    assert build.build(["etcd", "ct"]) == 0


def test_an_unknown_tool_is_named_with_those_there_are() -> None:
    with pytest.raises(NotFound, match="kubeconform"):
        build.find_tool("kube-nothing")


def test_a_program_of_another_version_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    program = tmp_path / "kube-apiserver"
    program.write_text("#!/bin/sh\necho Kubernetes v1.20.1\n")
    program.chmod(0o755)
    assert build.find_existing(TOOLS["kube-apiserver"]) is None
    program.write_text("#!/bin/sh\necho Kubernetes v1.35.2\n")
    assert build.find_existing(TOOLS["kube-apiserver"]) == program


def test_the_default_pools_have_a_node_with_gpus() -> None:
    nodes = [make_node(pool, name, 1) for pool in read_pools(DEFAULT_POOLS) for name in node_names(pool)]
    assert any("nvidia.com/gpu" in node["status"]["allocatable"] for node in nodes)


# --- the status of pods ----------------------------------------------------------------------------------------------


def test_a_status_told_as_a_request_ends_is_sent_too() -> None:
    pod: Object = {"metadata": {"uid": "1"}}
    sent: list[Object] = []

    async def scene() -> None:
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def send(_: Object, status: Object) -> None:
            sent.append(status)
            await answer

        async def tell_as_the_answer_comes() -> None:
            await answer
            reporter.tell(pod, {"ready": 2})

        reporter = Reporter(send)
        reporter.tell(pod, {"ready": 1})
        await asyncio.sleep(0)  # the request is made, so that its sender hears of the answer first
        other = asyncio.ensure_future(tell_as_the_answer_comes())
        await asyncio.sleep(0)
        answer.set_result(None)
        await other
        await reporter.finish(pod)

    asyncio.run(scene())
    assert sent == [{"ready": 1}, {"ready": 2}]


def test_what_is_told_during_a_request_is_told_as_one_and_nothing_twice() -> None:
    pod: Object = {"metadata": {"uid": "1"}}
    sent: list[Object] = []

    async def scene() -> None:
        async def send(_: Object, status: Object) -> None:
            sent.append(status)
            await asyncio.sleep(0.01)

        reporter = Reporter(send)
        for count in (0, 1, 2, 2):
            reporter.tell(pod, {"ready": count})
            await asyncio.sleep(0)
        await reporter.finish(pod)

    asyncio.run(scene())
    assert sent == [{"ready": 0}, {"ready": 2}]


_LOG = b"2026-01-01T00:00:01.0Z stdout F one\n2026-01-01T00:00:02.0Z stderr P tw\n2026-01-01T00:00:03.0Z stderr F o\n"


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (LogRequest(), b"one\ntwo\n"),
        (LogRequest(tail=1), b"o\n"),
        (LogRequest(tail=0), b""),
        (LogRequest(since="2026-01-01T00:00:02"), b"two\n"),
        (LogRequest(since="2026-01-01T00:00:02Z"), b"two\n"),
        (LogRequest(limit_bytes=2), b"on"),
        (LogRequest(timestamps=True, tail=1), b"2026-01-01T00:00:03.0Z o\n"),
    ],
)
def test_logs_are_selected(request_: LogRequest, expected: bytes) -> None:
    assert select_lines(_LOG, request_) == expected


# --- what fails around the kubelet -----------------------------------------------------------------------------------

_MakeAgent: TypeAlias = Callable[[StandInServer], Agent]
_SERVER_BUSY = ApiError("etcdserver: request timed out", status=500)


@pytest.fixture
def agent_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _MakeAgent:
    """How to make, in a running loop, a kubelet without cluster, root or processes."""
    return lambda server: make_agent(tmp_path, server, monkeypatch)


def _service(name: str, address: str, **ports: int) -> Object:
    listed = [{"name": key, "port": port} for key, port in ports.items()]
    meta = {"name": name, "namespace": "n", "uid": name}
    return {"metadata": meta, "spec": {"clusterIP": address, "ports": listed}, "status": {}}


def _load_balancer(name: str, address: str) -> Object:
    service = _service(name, address)
    return {**service, "spec": {**service["spec"], "type": "LoadBalancer"}}


def test_ports_to_listen_on_are_none_that_the_kernel_gives_to_others() -> None:
    ports = free_ports(200)
    assert len(set(ports)) == 200
    assert max(ports) < 32768


@pytest.mark.parametrize("error", [_SERVER_BUSY, TimeoutError("read"), IncompleteRead(b"")])
@pytest.mark.parametrize("volumes", [[], [{"name": "v", "configMap": {"name": "c"}}]])
def test_a_lookup_that_fails_once_is_made_again(agent_of: _MakeAgent, volumes: list[Object], error: Exception) -> None:
    server = StandInServer("configmaps", error)

    async def scene() -> None:
        agent_of(server)._on_pod("ADDED", make_pod(volumes=volumes))
        await until(lambda: "Running" in server.phases())

    asyncio.run(scene())


def test_a_pod_without_deadline_does_not_exceed_it(
    agent_of: _MakeAgent, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    async def launch(_: Object) -> None:
        raise asyncio.TimeoutError("the launcher is silent")

    async def scene() -> Object:
        agent = agent_of(StandInServer())
        monkeypatch.setattr(container, "launch", launch)
        running = pod.Pod(make_pod(), agent._machine)
        await until(running._life.done)
        await asyncio.sleep(0)
        return dict(running.pod["status"])

    assert "reason" not in asyncio.run(scene())
    assert "the launcher is silent" in capfd.readouterr().err


def test_a_pod_that_overruns_its_stop_is_told_as_killed(agent_of: _MakeAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod, "_STOP_MARGIN_S", 0.05)
    server = StandInServer()

    async def scene() -> None:
        agent = agent_of(server)
        agent._on_pod("ADDED", make_pod())
        await until(lambda: "Running" in server.phases())
        await agent.pods["12345678-1"].stop(0)

    asyncio.run(scene())
    last = server.about("status")[-1]["status"]
    assert (last["phase"], last["containerStatuses"][0]["state"]["terminated"]["exitCode"]) == ("Failed", 137)


def test_what_others_say_of_a_pod_is_sent_with_what_we_say(agent_of: _MakeAgent) -> None:
    server, said = StandInServer(), {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": "x"}

    async def scene() -> None:
        agent = agent_of(server)
        agent._on_pod("ADDED", make_pod())
        await until(lambda: "Running" in server.phases())
        agent._on_pod("MODIFIED", {**make_pod(), "status": {"conditions": [said]}})
        agent.pods["12345678-1"].changed()
        await agent._reporter.finish(make_pod())

    asyncio.run(scene())
    assert said in server.about("status")[-1]["status"]["conditions"]


def test_a_status_that_is_refused_keeps_back_no_newer_one() -> None:
    sent: list[Object] = []

    async def send(_: Object, status: Object) -> None:
        sent.append(status)
        await asyncio.sleep(0)
        if len(sent) == 1:
            raise ApiError("refused", status=400)

    async def scene() -> None:
        reporter = Reporter(send)
        reporter.tell(make_pod(), {"ready": 1})
        await asyncio.sleep(0)
        reporter.tell(make_pod(), {"ready": 2})
        await reporter.finish(make_pod())

    asyncio.run(scene())
    assert sent == [{"ready": 1}, {"ready": 2}]


def test_what_is_never_answered_is_an_error_in_the_end(agent_of: _MakeAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents, "_TRIES", 2)
    server = StandInServer("", _SERVER_BUSY, _SERVER_BUSY)

    async def scene() -> None:
        agent = agent_of(server)
        await agent._persist(server.delete, "/pod")

    with pytest.raises(ApiError, match="timed out"):
        asyncio.run(scene())


def test_a_pod_whose_name_is_used_anew_is_gone(agent_of: _MakeAgent) -> None:
    refusal = ApiError("PATCH: metadata.uid: Invalid value: field is immutable", status=422)

    async def scene() -> None:
        await agent_of(StandInServer("status", refusal))._send_status(make_pod(), {})

    asyncio.run(scene())


def test_an_event_is_posted_again_under_the_same_name(agent_of: _MakeAgent) -> None:
    server = StandInServer("events", RemoteDisconnected("no answer"))

    async def scene() -> None:
        agent_of(server)._event(make_pod(), "Started", "Started container main", False)
        await until(lambda: len(server.asked) == 2)

    asyncio.run(scene())
    first, second = server.about("events")
    assert first == second
    assert first["metadata"]["name"].startswith("p.")


def test_each_load_balancer_has_an_address_of_its_own(agent_of: _MakeAgent) -> None:
    server = StandInServer("one", _SERVER_BUSY)

    async def scene() -> None:
        agent = agent_of(server)
        agent._on_service("ADDED", _load_balancer("one", "10.96.1.7"))
        agent._on_service("ADDED", _load_balancer("two", "10.96.200.7"))
        await until(lambda: len(server.asked) == 3)

    asyncio.run(scene())
    ((one,), (two,)) = (server.about(name)[-1]["status"]["loadBalancer"]["ingress"] for name in ("one", "two"))
    assert (one["ip"], two["ip"]) == ("198.18.1.7", "198.18.200.7")


def test_services_are_forwarded_again_when_that_failed(agent_of: _MakeAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    forwarded: list[object] = []

    async def forward(rules: object) -> None:
        forwarded.append(rules)
        if len(forwarded) == 1:
            raise ToolFailed("nft failed: busy")

    async def scene() -> None:
        agent = agent_of(StandInServer())
        monkeypatch.setattr(agent._network, "forward", forward, raising=False)
        agent._keep(agent._forward_services())
        agent._on_service("ADDED", _service("web", "10.96.0.5", http=80))
        await until(lambda: len(forwarded) == 2)

    asyncio.run(scene())
    assert forwarded[0] == forwarded[1]


def test_a_program_that_takes_too_long_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nsenter").write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid; exec sleep 1000\n")
    (tmp_path / "nsenter").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(network, "_PATIENCE_S", 0.5)
    with pytest.raises(ToolFailed, match="nft took over"):
        asyncio.run(network._run(1, ["nft"], ""))
    assert not Path("/proc", (tmp_path / "pid").read_text().strip()).exists()


def test_leases_are_renewed_after_a_refusal(agent_of: _MakeAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    renewed: list[str] = []

    def renew(_: object, name: str) -> None:
        renewed.append(name)
        if len(renewed) == 1:
            raise ApiError("forbidden", status=403)

    async def scene() -> None:
        agent = agent_of(StandInServer())
        agent._keep(agent._renew_leases())
        await until(lambda: len(renewed) == 2)

    monkeypatch.setattr(agents, "renew", renew)
    monkeypatch.setattr(agents, "LEASE_S", 0.04)
    asyncio.run(scene())


def test_a_watch_that_is_cut_off_begins_again(agent_of: _MakeAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    endings: list[Exception] = [IncompleteRead(b""), RuntimeError("the loop is closed")]

    def watch(_: str) -> None:
        raise endings.pop(0)

    async def scene() -> None:
        agent = agent_of(StandInServer())
        monkeypatch.setattr(agent.api, "watch", watch, raising=False)
        agent._watch("/api/v1/pods", agent._on_pod)

    asyncio.run(scene())
    assert not endings


class _Crowded(BaseHTTPRequestHandler):
    """An API server that lists, and has no room for watches."""

    def do_GET(self) -> None:
        body = json.dumps({"items": [], "metadata": {"resourceVersion": "1"}, "message": "too many"}).encode()
        self.send_response(429 if "watch=" in self.path else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is logged."""


def test_a_refused_watch_says_why(tmp_path: Path) -> None:
    with HTTPServer(("127.0.0.1", 0), _Crowded) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        config = write_kubeconfig(tmp_path, f"http://127.0.0.1:{server.server_port}")
        with Api(config) as api, pytest.raises(ApiError, match="too many") as caught:
            list(api.watch("/api/v1/pods"))
        server.shutdown()
    assert caught.value.status == 429
