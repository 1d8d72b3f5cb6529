"""Run the operator's server as an additional process in a local run of operator v0.

The replicas that the file names run from the start, like all local processes. The coordinator gets the replicas it
requests, up to their number; one that it deletes ends, and waits until it is requested again.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

import msgspec
from msgspec.structs import replace

import symphony_charts
from symphony_charts.integrations.dijob.server import DELETED, TABLE
from symphony_charts.integrations.dijob.settings import ASKED_FOR, SERVER, SERVER_URL, is_of_v0
from symphony_charts.local.plan.records import File, LocalPlan, PlannedProcess
from symphony_charts.spec.model import Experiment, LocalProcess, Process
from symphony_charts.spec.pods import ProcessRef, Service, pods_of, processes_of

_PORT = 8080
# Import paths of this package and msgspec, for programs that run without `site`.
_ROOTS = [str(PurePosixPath(symphony_charts.__path__[0]).parent), str(PurePosixPath(msgspec.__file__).parents[1])]


def with_server(
    experiment: Experiment, services: Sequence[Service], run_dir: str
) -> tuple[Experiment, Sequence[Service]]:
    """Return `experiment` with the operator's server as an additional process, if its coordinator needs one."""
    if not _needs_server(experiment):
        return experiment, services
    process = Process(
        command=_python("symphony_charts.integrations.dijob.server", run_dir),
        lifecycle="service",
        binds={SERVER: None},
        local=LocalProcess(preamble=[]),
    )
    listener = ProcessRef(SERVER, SERVER)
    service = Service(name=SERVER, port=_PORT, listener=listener, is_bound=True, is_exposed=False)
    return (
        msgspec.structs.replace(experiment, processes={**experiment.processes, SERVER: process}),
        (*services, service),
    )


def with_replicas(plan: LocalPlan, run_dir: str) -> LocalPlan:
    """Return `plan` with the table of its server, and with gates that hold deleted replicas; other plans unchanged."""
    servers = [process for process in plan.processes if process.pod == SERVER]
    if not servers:
        return plan
    replicas = list(_rows(plan, ASKED_FOR))
    given = {row["pod"] for row in replicas}
    table = {
        "host": servers[0].address,
        "port": plan.moved.get(SERVER, (plan.ports[SERVER],))[0],
        "coordinators": list(_rows(plan, ("coordinator",))),
        "replicas": replicas,
    }
    processes = tuple(
        replace(process, enter=(*process.enter, *_gate(run_dir, process))) if process.pod in given else process
        for process in plan.processes
    )
    file = File(path=TABLE, content=json.dumps(table).encode(), mode=0o600)
    return replace(
        plan, processes=processes, files=(*plan.files, file), folders=(*plan.folders, f"{run_dir}/{DELETED}")
    )


def _needs_server(experiment: Experiment) -> bool:
    pods = pods_of(experiment)
    if not is_of_v0(experiment) or "coordinator" not in pods or SERVER in pods:
        return False
    said = set(experiment.local.env)
    for _, process in processes_of(experiment):
        said |= {*process.env, *(process.local.env if process.local is not None else ())}
    return SERVER_URL not in said


def _rows(plan: LocalPlan, roles: Sequence[str]) -> Iterator[dict[str, object]]:
    """Yield the replicas of `roles`, each with its slots and the address that others dial."""
    pods: dict[str, list[PlannedProcess]] = {}
    for process in plan.processes:
        if not process.is_step and (process.group or process.process) in roles:
            pods.setdefault(process.pod, []).append(process)
    for pod, processes in pods.items():
        first = processes[0]
        role = first.group or first.process
        port = first.env.get(f"{role.upper()}_PORT", "")
        yield {
            "pod": pod,
            "namespace": first.env["KUBERNETES_POD_NAMESPACE"],
            "role": role,
            "slots": [process.slot for process in processes],
            "url": f"{first.address}:{port}",
        }


def _gate(run_dir: str, process: PlannedProcess) -> list[str]:
    if process.is_step:
        return []
    return _python("symphony_charts.integrations.dijob.gate", f"{run_dir}/{DELETED}/{process.pod}")


def _python(module: str, *words: str) -> list[str]:
    """Return the command of a program of ours that ignores the environment and does not need `site`."""
    start = f"import os, sys; sys.path[:0] = sys.argv.pop(1).split(os.pathsep); from {module} import main; main()"
    return [sys.executable, "-I", "-S", "-c", start, os.pathsep.join(_ROOTS), *words]
