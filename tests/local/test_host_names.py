"""Pods have their own host names: on this machine by a hosts file private to the run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from symphony_charts.local import up as local_run
from symphony_charts.local.machine.machine import plan_here
from symphony_charts.local.plan.environment import of_machine
from symphony_charts.local.plan.records import LocalPlan
from symphony_charts.spec.data import from_data
from symphony_charts.spec.pods import allocate
from tests.local.runs import log_of, start

_ASK = "import socket, sys; print(sorted({i[4][0] for i in socket.getaddrinfo(sys.argv[1], 80)}), flush=True)"
_STAYS = {"command": ["sleep", "300"], "lifecycle": "service", "grace_period": 1}


def _asks(name: str) -> dict[str, object]:
    return {"command": [sys.executable, "-c", _ASK, name]}


def _plan(folder: Path, *, mounts: bool = True, **data: object) -> LocalPlan:
    experiment = from_data({"name": "exp", **data})
    return plan_here(experiment, allocate(experiment), folder, "r", run_dir=None if mounts else folder / "run")


def _hosts(plan: LocalPlan) -> list[str]:
    (file,) = plan.files
    return file.content.decode().splitlines()


@pytest.mark.usefixtures("here")
def test_a_program_finds_every_replica_of_a_pod_by_the_name_that_it_dials(tmp_path: Path) -> None:
    processes = {"redis": {**_STAYS, "names": "cache", "replicas": 2}, "a": _asks("cache"), "b": _asks("localhost")}
    before = Path("/etc/hosts").read_bytes()
    run = start(tmp_path, processes=processes, local={"tty": False})
    assert local_run.wait(run) == 0, log_of(run, "a")
    addresses = [item.address for item in run.plan().processes if item.process == "redis"]
    assert log_of(run, "a") == f"{sorted(addresses)}\n"
    assert "127.0.0.1" in log_of(run, "b")
    assert Path("/etc/hosts").read_bytes() == before


def test_what_the_machine_says_of_a_name_of_a_pod_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machines = tmp_path / "hosts"
    machines.write_text("127.0.0.1 localhost\n10.1.1.1 db other # both\n10.1.1.2 db\n# a db of old\n")
    monkeypatch.setattr("symphony_charts.local.machine.machine.HOSTS", str(machines))
    plan = _plan(tmp_path, processes={"postgres": {**_STAYS, "names": ["db"]}})
    address = plan.processes[0].address
    assert [line for line in _hosts(plan) if not line.startswith("#")] == [
        f"{address} db",
        "127.0.0.1 localhost",
        "10.1.1.1 other",
    ]
    assert of_machine("\n".join(_hosts(plan))) == "127.0.0.1 localhost\n10.1.1.1 other\n# a db of old"


def test_without_names_processes_see_the_file_of_the_machine(tmp_path: Path) -> None:
    plan = _plan(tmp_path, processes={"a": _STAYS})
    assert (plan.files, plan.binds) == ((), ())


def test_where_nothing_can_be_mounted_the_lines_to_add_are_said(tmp_path: Path) -> None:
    plan = _plan(tmp_path, mounts=False, processes={"postgres": {**_STAYS, "names": ["db"]}})
    (note,) = [note for note in plan.notes if "/etc/hosts" in note]
    assert f"cannot resolve db; to fix it, add to /etc/hosts: {plan.processes[0].address} db" in note
