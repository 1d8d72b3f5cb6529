"""Random experiments as in their files, with loads near the capacity of some node pools."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.e2e.oracle.nodes import GPU, NodePool
from tests.e2e.oracle.overlays import UNMODELLED, add_constraints, quantity

_MIB = 1 << 20
_Data = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Spec:
    """An experiment's `data`, the values laid over its chart, and the groups with unmodelled settings."""

    data: _Data
    overrides: _Data
    unmodelled: frozenset[str]


def random_spec(rng: random.Random, pools: Sequence[NodePool], *, most_pods: int) -> Spec:
    """Return one to five pods of all forms; rarely in a gang, or as another kind of workload."""
    number = rng.choice((1, 1, 2, 2, 3, 4, 5))
    load = rng.choice((0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1)) / number
    data: _Data = {"name": "e", "image": "a:1", "on_failure": "continue", "processes": {}, "groups": {}}
    unmodelled = set()
    for index in range(number):
        name = f"k{index}"
        like = rng.choice(pools)
        kind, settings, cpu = _pod(rng, name, like)
        room = sum(pool.free["cpu"] * pool.count for pool in pools) * load
        count = max(1, min(int(room / max(cpu, 50)), most_pods // number))
        settings["replicas"] = rng.randint(max(1, count // 2), count)
        processes = settings["processes"] if kind == "groups" else {name: settings}
        if add_constraints(rng, settings, processes, like, [f"k{i}" for i in range(number)]) & UNMODELLED:
            unmodelled.add(name)
        data[kind][name] = settings
    if rng.random() < 0.15:
        requests = _requests(rng, rng.choice(pools), rng.choice((1, 2, 4)))
        data["prepare"] = {"fetch": {"command": ["f"], "requests": requests}}
    if rng.random() < 0.2:
        data["workload"] = _workload(rng)
    if data.get("workload", {}).get("kind") not in ("jobset", "volcano"):
        # Without the conductor, which has no tolerations of a case.
        for settings in [*data["processes"].values(), *data["groups"].values()]:
            members = settings.get("processes", {"": settings}).values()
            if all(member.get("lifecycle") == "service" for member in members):
                settings["until"] = "uninstall"
    if rng.random() < 0.05:
        data["placement"] = {"exclusive": rng.choice(("cloud.google.com/gke-nodepool", "kubernetes.io/hostname"))}
    return Spec(data=data, overrides=_overrides(rng, data), unmodelled=frozenset(unmodelled))


def _pod(rng: random.Random, name: str, like: NodePool) -> tuple[str, _Data, int]:
    """Return its section of the spec, its settings, and roughly its request in millicores."""
    parts = rng.choice((1, 1, 2, 3, 4, 7, 10))
    if rng.random() < 0.25:
        assigned = _assignment(rng, like)
        lone: _Data = {"command": ["x"], "assign_to": assigned}
        each = like.free["cpu"] // (assigned.get("process_per_machine") or 2)
        return _beside(rng, lone, each) if rng.random() < 0.5 else ("processes", lone, each)
    requests = _requests(rng, like, parts)
    process: _Data = {"command": ["x"], "requests": requests}
    if rng.random() < 0.1:
        process["limits"] = dict(requests)
        if rng.random() < 0.5:
            del process["requests"]
    if GPU in like.free and rng.random() < 0.6:
        process["gpus"] = rng.choice((1, 1, like.free[GPU]))
    if rng.random() < 0.3:
        process["lifecycle"] = "service"
    elif rng.random() < 0.05:
        process["reserve"] = True
    cpu = like.free["cpu"] // parts
    return _beside(rng, process, cpu) if rng.random() < 0.4 else ("processes", process, cpu)


def _beside(rng: random.Random, process: _Data, cpu: int) -> tuple[str, _Data, int]:
    """Return the process in a group: siblings ask for little or nothing; a service beside finite work is a sidecar."""
    processes = {"main": process}
    for number in range(rng.choice((1, 1, 2, 4))):
        sibling: _Data = {"command": ["y"]}
        if rng.random() < 0.5:
            sibling["requests"] = {"cpu": quantity(rng, rng.choice((10, 50, 250))), "memory": "64Mi"}
        if rng.random() < 0.4:
            sibling["lifecycle"] = "service"
        processes[f"s{number}"] = sibling
    return "groups", {"processes": processes}, cpu + 100


def _requests(rng: random.Random, like: NodePool, parts: int) -> _Data:
    cpu = max(10, like.free["cpu"] // parts - rng.choice((0, 0, 10, 100))) + rng.choice((0,) * 7 + (1,))
    memory = like.free["memory"] // _MIB // rng.choice((1, 2, parts, parts, 20)) - rng.choice((0, 1))
    found: _Data = {"cpu": quantity(rng, cpu), "memory": rng.choice((f"{memory}Mi", str(memory * _MIB)))}
    if "ephemeral-storage" in like.free and rng.random() < 0.3:
        found["ephemeral-storage"] = rng.choice(("5Gi", "10G", "20Gi"))
    return found


def _assignment(rng: random.Random, like: NodePool) -> _Data:
    gpus = like.free.get(GPU, 0)
    shares = [n for n in (1, 1, 2, 3, 5, 8) if gpus % n == 0]
    machine = {"assign_to": "machine", "node_pool_name": like.name, "process_per_machine": rng.choice(shares)}
    cpu = round(like.free["cpu"] / 1000 / rng.choice((1, 2, 3)) - 0.05, 2)
    asked: _Data = {"cpu": cpu, "memory_m": like.free["memory"] // _MIB // rng.choice((2, 4))}
    resource = {"assign_to": "resource", **asked, **({"gpu_count": 1} if gpus else {})}
    calls = [machine, machine, resource, {"assign_to": "node_pool", "node_pool_name": like.name, **asked}]
    calls += [{"assign_to": "gpu", "node_pool_name": like.name}] * (2 if gpus else 0)
    found = rng.choice(calls)
    return {**found, "exclusive": True} if rng.random() < 0.1 else found


def _workload(rng: random.Random) -> _Data:
    gangs: list[_Data] = [
        {"gang": "native", "gang_version": "v1alpha2"},
        {"gang": "coscheduling", "scheduler_name": "scheduler-plugins-scheduler"},
        {"gang": "volcano"},
        {"gang": "kueue", "queue": "q"},
    ]
    return rng.choice((rng.choice(gangs), {"kind": "jobset"}, {"kind": "volcano"}, {"kind": "appwrapper"}))


def _overrides(rng: random.Random, data: Mapping[str, Any]) -> _Data:
    """Return values as for `--set`: other replicas, other requests, of one group or of all."""
    if rng.random() < 0.75:
        return {}
    name = rng.choice([*data["groups"], *data["processes"]])
    container = "main" if name in data["groups"] else name
    requests = {"resources": {"requests": {"cpu": quantity(rng, rng.choice((100, 700, 1500)))}}}
    process = data["groups"].get(name, {"processes": data["processes"]})["processes"][container]
    choices: list[_Data] = [{"groups": {name: {"replicas": rng.choice((1, 2, 5))}}}]
    if not (process.get("limits") or process.get("reserve")):
        choices.append({"groups": {name: {"containers": {container: requests}}}})
    choices.append({"defaults": {"resources": {"requests": {"cpu": rng.choice(("50m", "300m"))}}}})
    choices.append({"defaults": {"tolerations": [{"operator": "Exists"}]}})
    choices.append({"defaults": {"nodeSelector": {"disk": "ssd"}}})
    return rng.choice(choices)
