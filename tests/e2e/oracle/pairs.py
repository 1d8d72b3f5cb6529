"""Filter by filter: for each pod, the real scheduler's count of nodes per reason against the planner's.

A pod of a rendered chart asks for a resource that no node has, so every node refuses it with its reasons; the counts
of the reasons over all nodes must be equal for every pod.
"""

from __future__ import annotations

import copy
import random
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from symphony_charts.placement.fit.demand import Shape, demands_of
from symphony_charts.placement.fit.podspec import labels_match, ports_conflict, untolerated_taint
from symphony_charts.placement.fit.supply import with_admission
from symphony_charts.placement.pools.pool import HOSTNAME, HostPort, Pool, Taint
from tests.e2e.oracle.experiments import Case, make_case
from tests.e2e.oracle.live import Scheduler
from tests.e2e.oracle.nodes import MARK, NodePool, node_objects, random_pools, read
from tests.e2e.oracle.pods import PodOf, is_looked_at, put_into
from tests.e2e.rig.api import ApiError, Object

NODES = 50
NONE = "oracle.example/none"
"""A resource that no node has."""
_BATCH = 100
_ROLE = "oracle.example/role"
_CORDONED = Taint(key="node.kubernetes.io/unschedulable")


@dataclass
class PairReport:
    pairs: int = 0
    disagreements: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Node:
    offer: NodePool
    pool: Pool
    unschedulable: bool
    used: Mapping[str, int]
    ports: frozenset[HostPort]


def compare_filters(real: Scheduler, pairs: int, seed: int = 1) -> PairReport:
    report = PairReport()
    number = 0
    while report.pairs < pairs:
        _round(real, f"f{seed}-{number}", random.Random(seed * 1000 + number), report)
        number += 1
    return report


def _round(real: Scheduler, case: str, rng: random.Random, report: PairReport) -> None:
    nodes = [_node(rng) for _ in range(NODES)]
    with real.namespace() as place:
        try:
            for number, node in enumerate(nodes):
                (made,) = node_objects([replace(node.offer, name=f"n{number}")], case)
                made["spec"] |= {"unschedulable": True} if node.unschedulable else {}
                real.add_node(made)
                if node.used:
                    real.api.create(place, _resident(node, made["metadata"]["name"], case))
            probes = _probes(rng)
            time.sleep(1.0)  # the scheduler's view of the nodes lags by some milliseconds
            sent = [number for number, (pod, _) in enumerate(probes) if _send(real, place, case, number, pod)]
            for number, message in _messages(real, place, case, len(sent)).items():
                told, ours = _parse(message), Counter(_reasons(probes[number][1], nodes))
                report.pairs += len(nodes)
                if told != ours:
                    report.disagreements.append(f"{probes[number][1]}\n  scheduler: {told}\n  planner:   {ours}")
        finally:
            real.clear(place, case)


def _send(real: Scheduler, place: str, case: str, number: int, pod: PodOf) -> bool:
    """Return True if the API server accepts the probe: resources of the pod as a whole may be below its containers'."""
    made = put_into(case, pod, f"{case}-p{number}", is_gang=True)
    made["metadata"]["labels"][_ROLE] = "probe"
    try:
        real.api.create(place, made)
    except ApiError as error:
        if "must be greater than or equal to aggregate" not in str(error):
            raise
        return False
    return True


def _node(rng: random.Random) -> _Node:
    offer = replace(random_pools(rng)[0], count=1)
    if "machine_type" not in offer.entry:  # its taints come from the catalogue
        taints = [taint for taint in offer.taints if rng.random() < 0.3]
        if rng.random() < 0.1:
            effect = rng.choice(("NoSchedule", "NoExecute"))
            taints.append({"key": "rack", "value": str(rng.randint(1, 4)), "effect": effect})
        offer = replace(offer, taints=taints, zones=(), entry={**offer.entry, "taints": taints, "zones": []})
    (pool,) = read([offer]).pools
    used: dict[str, int] = {}
    if rng.random() < 0.5:
        used = {"cpu": offer.free["cpu"] // rng.randint(1, 3), "memory": offer.free["memory"] // 2, "pods": 1}
    ports = frozenset({HostPort("TCP", 8080)}) if used and rng.random() < 0.8 else frozenset()
    return _Node(offer, pool, rng.random() < 0.15, used, ports)


def _resident(node: _Node, host: str, case: str) -> Object:
    requests = {"cpu": f"{node.used['cpu']}m", "memory": str(node.used["memory"])}
    ports = [{"containerPort": port, "hostPort": port} for _, port, _ in node.ports]
    container = {"name": "c", "image": "none", "resources": {"requests": requests}, "ports": ports}
    pod = PodOf("there", {"labels": {}}, {"nodeName": host, "containers": [container]})
    return put_into(case, pod, f"{host}-there", is_gang=False)


def _probes(rng: random.Random) -> list[tuple[PodOf, Shape]]:
    """Return pods of random charts that ask for a missing resource, and the planner's reading of them."""
    found: list[tuple[PodOf, Shape]] = []
    while len(found) < _BATCH:
        case = make_case(rng.randrange(1 << 30))
        if isinstance(case, Case):
            found += _of_case(case)
    return found[:_BATCH]


def _of_case(case: Case) -> Iterator[tuple[PodOf, Shape]]:
    for pod in {pod.group: pod for pod in case.pods}.values():
        if pod.group in case.spec.unmodelled or not is_looked_at(
            {"spec": {**pod.spec, "schedulerName": "default-scheduler"}}
        ):
            continue
        spec: dict[str, Any] = copy.deepcopy(dict(pod.spec))
        resources = spec["containers"][0].setdefault("resources", {})
        for kind in ("requests", "limits"):
            resources[kind] = {**resources.get(kind, {}), NONE: "1"}
        made = PodOf(pod.group, pod.metadata, spec)
        template = {"metadata": dict(pod.metadata), "spec": spec}
        (demand,) = demands_of([{"kind": "Deployment", "metadata": {"name": "d"}, "spec": {"template": template}}])
        yield made, with_admission(demand.shape)


def _reasons(shape: Shape, nodes: list[_Node]) -> list[str]:
    """Return the reasons of the planner's filters per node, in the wording and the order of the scheduler."""
    found = []
    for node in nodes:
        taint = untolerated_taint(shape.tolerations, node.pool.taints)
        if node.unschedulable and untolerated_taint(shape.tolerations, [_CORDONED]):
            found.append("unschedulable")
        elif taint is not None:
            found.append("taint")
        elif not labels_match(dict(shape.selector), shape.affinity, {**node.pool.labels, HOSTNAME: ""}):
            found.append("affinity")
        elif ports_conflict(shape.ports, node.ports):
            found.append("ports")
        else:
            free = {key: amount - node.used.get(key, 0) for key, amount in node.pool.usable.items()}
            found += [
                "Too many pods" if key == "pods" else f"Insufficient {key}"
                for key, amount in shape.requests
                if amount > free.get(key, 0)
            ]
    return found


_PART = re.compile(r"(\d+) (.+?)(?:, (?=\d+ )|$)")
_WORDS = (
    (re.compile(r"node\(s\) were unschedulable"), "unschedulable"),
    (re.compile(r"node\(s\) had untolerated taint"), "taint"),
    (re.compile(r"node\(s\) didn't match Pod's node affinity/selector"), "affinity"),
    (re.compile(r"node\(s\) didn't have free ports for the requested pod ports"), "ports"),
)


def _parse(message: str) -> Counter[str]:
    """Parse ``0/50 nodes are available: 3 Insufficient cpu, ...`` into counts, up to the end of the first sentence."""
    body = re.sub(r"\.? ?(preemption: .*|no new claims .*)$", "", message.split("available: ", 1)[1]).rstrip(". ")
    counts: Counter[str] = Counter()
    for number, reason in _PART.findall(body):
        text = reason.rstrip(". ")
        for pattern, word in _WORDS:
            if pattern.match(text):
                text = word
                break
        counts[text] += int(number)
    return counts


def _messages(real: Scheduler, place: str, case: str, expected: int) -> dict[int, str]:
    deadline = time.monotonic() + 90
    while True:
        found: dict[int, str] = {}
        for pod in real.pods(place, case):
            if pod["metadata"]["labels"].get(_ROLE) != "probe":
                continue
            for condition in pod.get("status", {}).get("conditions", []):
                if condition["type"] == "PodScheduled" and condition.get("message"):
                    found[int(pod["metadata"]["name"].rsplit("-p", 1)[1])] = condition["message"]
        if len(found) == expected:
            return found
        if time.monotonic() > deadline:
            raise TimeoutError(f"{case}: {len(found)} of {expected} pods have been looked at; {MARK}")
        time.sleep(0.2)
