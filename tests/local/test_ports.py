"""Ports in use: their owner, other addresses, and ports that move for every process that sees them."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from symphony_charts.errors import Conflict, SymphError
from symphony_charts.local import up as local_run
from symphony_charts.local.machine.addresses import choose_addresses
from symphony_charts.local.machine.machine import plan_here
from symphony_charts.local.plan.records import AddressRange, candidate_ranges
from symphony_charts.local.runs import Run, home, live_runs
from symphony_charts.local.status import run_status
from symphony_charts.spec.data import from_data
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import allocate
from symphony_charts.system.sockets import has_address, holder_of, is_free
from tests.chart.strategies import experiments
from tests.local.parity.compare import compare
from tests.local.runs import log_of, python, start, until

# Listens on its address and answers every client with it.
SERVE = """
import os, socket
server = socket.create_server((os.environ["SYMPH_X_HOST"], int(os.environ["SYMPH_X_PORT"])))
print("at", os.environ["SYMPH_X_PORT"], flush=True)
while True:
    peer = server.accept()[0]
    peer.sendall(os.environ["SYMPH_INDEX"].encode())
    peer.close()
"""
# Queries every replica, in order, and the service by its address.
ASK = """
import os, socket
for name in [*os.environ["SYMPH_X_HOSTS"].split(","), os.environ["SYMPH_X_ADDR"]]:
    host, port = name.split(":")
    print(socket.create_connection((host, int(port))).recv(9).decode(), end=" ", flush=True)
"""


@contextlib.contextmanager
def listener(address: str, port: int = 0) -> Iterator[int]:
    """Yield a port on which this process listens."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, port), family=family, dualstack_ipv6=address == "::") as server:
        yield int(server.getsockname()[1])


def experiment_of(port: int, *, fixed: bool = False, **more: Any) -> Experiment:
    web = {**python(SERVE), "binds": {"x": port if fixed else None}, "lifecycle": "service", "image": "i"}
    ask = {**python(ASK), "connects": "x", "image": "i"}
    data = {"name": "exp", "port_range": [port, port + 40], "processes": {"web": {**web, **more}, "ask": ask}}
    return from_data(data)


def up(experiment: Experiment, folder: Path) -> Run:
    run = local_run.up(experiment, allocate(experiment), folder=folder)
    assert run is not None
    return run


@pytest.mark.parametrize("address", ["127.9.8.7", "0.0.0.0", "::"])  # noqa: S104 - what the test is about
def test_who_has_an_address_is_known_by_pid_and_command(address: str) -> None:
    with listener(address) as port:
        holder = holder_of("127.9.8.7", port)
        assert not is_free("127.9.8.7", port)
    assert holder.startswith(f"pid {os.getpid()} (")
    assert Path(sys.executable).name in holder or "python" in holder
    assert holder.endswith(f"listening on {f'[{address}]' if ':' in address else address}:{port}")


def test_who_listens_elsewhere_has_nothing_here() -> None:
    with listener("127.9.8.6") as port:
        assert not holder_of("127.9.8.7", port)
        assert is_free("127.9.8.7", port)


def test_a_process_that_may_not_be_looked_into_is_told_by_its_user() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root sees to it that somebody else listens")
    program = (
        "import os, socket, sys; os.setuid(65534); s = socket.create_server(('127.9.8.7', 0));"
        "print(s.getsockname()[1], flush=True); sys.stdin.read()"
    )
    look = (
        "import os, sys; from symphony_charts.system.sockets import holder_of;"
        "os.setgid(65534); os.setuid(12345); print(holder_of('127.9.8.7', int(sys.argv[1])))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        port = other.stdout.readline().strip()
        done = subprocess.run([sys.executable, "-c", look, port], capture_output=True, text=True, check=False)
        other.communicate("")
    assert (done.stderr, done.stdout.strip()) == ("", f"a process of user nobody, listening on 127.9.8.7:{port}")


def test_the_whole_of_127_is_this_machine() -> None:
    assert has_address("127.200.3.4")
    assert not has_address("203.0.113.9")


def test_a_taken_usual_address_is_left_and_its_holder_named() -> None:
    with listener("127.0.0.1") as port:
        pass
    usual = next(candidate_ranges("exp", 2, str(home())))
    with listener(usual.address(0), port):
        places = choose_addresses(experiment_of(port), allocate(experiment_of(port)), strict=True)
    assert places.addresses != usual
    assert places.moved == {}
    assert f"the experiment uses another address: {usual.address(0)}:{port} of service" in places.notes[0]
    assert f"pid {os.getpid()} " in places.notes[0]


@pytest.mark.usefixtures("here")
def test_a_port_that_is_taken_everywhere_moves_and_every_process_sees_it(tmp_path: Path) -> None:
    with listener("0.0.0.0") as port:  # noqa: S104 - what the test is about
        run = up(experiment_of(port), tmp_path)
        until(lambda: not run.is_live)
    (other,) = run.plan().moved["x"]
    assert other in range(port + 1, port + 41)
    assert log_of(run, "web") == f"at {other}\n"
    assert (run.state().phase, log_of(run, "ask")) == ("finished", "0 0 ")
    assert f"{port} of service" in run.plan().notes[0]
    assert run.plan().notes[0].endswith(f"this run uses {other}")
    assert run_status(run).services[0].address.endswith(f":{other}")


def test_a_fixed_port_that_is_taken_is_refused_by_the_name_of_its_holder(tmp_path: Path) -> None:
    with listener("0.0.0.0") as port, pytest.raises(Conflict) as caught:  # noqa: S104 - likewise
        up(experiment_of(port, fixed=True), tmp_path)
    assert f'of service "x" is in use by pid {os.getpid()} (' in caught.value.what
    assert "ports: moved" in caught.value.next


@pytest.mark.usefixtures("here")
def test_a_holder_of_ours_is_told_by_its_experiment(tmp_path: Path) -> None:
    serve = (
        "import socket, sys; s = socket.create_server(('0.0.0.0', 0)); print(s.getsockname()[1], flush=True); input()"
    )
    other = start(tmp_path, "other", processes={"a": python(serve)})
    until(lambda: log_of(other, "a").endswith("\n"))
    with pytest.raises(Conflict, match='of experiment "other", listening on '):
        up(experiment_of(int(log_of(other, "a")), fixed=True), tmp_path)


@pytest.mark.usefixtures("here")
def test_at_one_address_every_replica_has_a_port_of_its_own(tmp_path: Path) -> None:
    with listener("127.0.0.1") as port:
        experiment = experiment_of(port, fixed=True, replicas=3)
        experiment = from_data({**_data(experiment), "local": {"ports": "moved"}})
        run = up(experiment, tmp_path)
        until(lambda: not run.is_live)
    assert run.plan().base_address == "127.0.0.1"
    assert len(set(run.plan().moved["x"]) - {port}) == 3
    assert (run.state().phase, log_of(run, "ask")) == ("finished", "0 1 2 0 ")
    assert "this run uses" in run.plan().notes[0]


@pytest.mark.usefixtures("here")
def test_two_runs_at_one_address_do_not_meet(tmp_path: Path) -> None:
    with listener("127.0.0.1") as port:
        pass
    serve = {**python("input()"), "binds": {"x": port}}
    first = start(tmp_path, "one", processes={"a": serve}, local={"ports": "moved"})
    second = start(tmp_path, "two", processes={"a": serve}, local={"ports": "moved"})
    assert (first.plan().moved, list(second.plan().moved)) == ({}, ["x"])


def test_a_probe_asks_the_port_that_moved(tmp_path: Path) -> None:
    with listener("127.0.0.1") as port:
        data = _data(experiment_of(port, fixed=True, ready={"tcp": {"port": port}}))
        experiment = from_data({**data, "local": {"ports": "moved"}})
        plan = plan_here(experiment, allocate(experiment), tmp_path, "r")
    assert [check.port for check in plan.processes[0].checks] == list(plan.moved["x"]) != [port]


def test_at_one_address_more_may_dial_than_listen(tmp_path: Path) -> None:
    processes = {
        "web": {**python("pass"), "binds": {"x": 7000}, "lifecycle": "service", "replicas": 2},
        "ask": {**python("pass"), "connects": "x", "replicas": 3},
    }
    experiment = from_data({"name": "exp", "processes": processes, "local": {"ports": "moved"}})
    plan = plan_here(experiment, allocate(experiment), tmp_path, "run")
    told = [(process.process, process.env["SYMPH_X_PORT"]) for process in plan.processes]
    [dialled] = {port for process, port in told if process == "ask"}
    assert dialled == told[0][1] != told[1][1]


def _what_is_wrong(data: dict[str, Any], ports: str, folder: Path) -> list[tuple[str, str]]:
    local = {**data.get("local", {}), "ports": ports}
    try:
        experiment = from_data({**data, "local": local})
        plan_here(experiment, allocate(experiment), folder, "run")
    except SymphError as error:
        return [(problem.path, problem.what) for problem in getattr(error, "problems", [error])]
    return []


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(experiments(), st.integers(0, 4))
def test_what_can_be_planned_at_addresses_of_its_own_can_be_planned_at_one(
    tmp_path_factory: pytest.TempPathFactory, data: dict[str, Any], replicas: int
) -> None:
    folder = tmp_path_factory.getbasetemp()
    # Fields that need a cluster or an image have no local value; other tests cover their refusal.
    for pods in (data.get("processes", {}), *(group["processes"] for group in data.get("groups", {}).values())):
        for process in pods.values():
            for field in ("mounts", "env", "container_overlay", "cmds", "args"):
                process.pop(field, None)
            process["command"] = ["x"]
    for pod in data.get("processes", {}).values():
        pod["replicas"] = pod.get("replicas", 1) + replicas
        replicas = 4 - replicas
    data.pop("secrets", None)
    assert _what_is_wrong(data, "moved", folder) == _what_is_wrong(data, "own", folder)


def _data(experiment: Experiment) -> dict[str, Any]:
    from symphony_charts.spec.data import to_data

    return to_data(experiment)


@pytest.mark.usefixtures("here")
def test_a_probe_in_tmux_finds_moved_ports_and_gpus_no_difference_either(tmp_path: Path) -> None:
    with listener("127.0.0.1") as port:
        data = _data(experiment_of(port, fixed=True, args=["--port=$(SYMPH_X_PORT)", str(port)], replicas=2, gpus=2))
        result = compare(from_data({**data, "local": {"ports": "moved"}}), {}, tmp_path, probes=True)
    assert (result.sides[-1], result.differences) == ("tmux", ())


@pytest.mark.usefixtures("here")
def test_runs_that_start_at_the_same_moment_at_one_address_get_different_ports(tmp_path: Path) -> None:
    with listener("127.0.0.1") as port:
        pass
    main_words = [sys.executable, "-c", "import sys; from symphony_charts.cli.main import main; sys.exit(main())"]
    started = []
    for number in range(5):
        serve = {**python("input()"), "binds": {"x": port}}
        spec = tmp_path / f"{number}.json"
        data = {"name": f"e{number}", "processes": {"a": serve}, "local": {"ports": "moved"}}
        spec.write_text(json.dumps(data))
        started.append(subprocess.Popen([*main_words, "up", str(spec)], stderr=subprocess.DEVNULL))
    assert [one.wait(timeout=60) for one in started] == [0] * 5
    plans = [run.plan() for run in live_runs()]
    assert len({plan.moved.get("x", [port])[0] for plan in plans}) == 5


@given(st.text(max_size=20), st.integers(1, 2000))
def test_every_pod_has_a_loopback_address_of_its_own(name: str, pods: int) -> None:
    first = next(candidate_ranges(name, pods))
    addresses = [ip_address(first.address(index)) for index in range(pods)]
    assert len(set(addresses)) == pods
    assert all(address in ip_network("127.0.0.0/8") and int(address) & 255 not in (0, 255) for address in addresses)
    assert all(address not in ip_network("127.0.0.0/16") for address in addresses)


def test_an_experiment_keeps_its_addresses_which_are_not_those_of_another_user() -> None:
    def drawn(home: str) -> list[AddressRange]:
        return list(islice(candidate_ranges("rl", 3, home), 4))

    assert drawn("/home/me") == drawn("/home/me")
    assert not {*drawn("/home/me")} & {*drawn("/home/you")}
