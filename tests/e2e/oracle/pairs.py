"""Filter by filter: for each pod the reasons of all nodes, as the real scheduler counts them and as the planner does.

A pod asks for a resource that nobody has, so every node refuses it and says why; the counts of the reasons over all
nodes must be equal for every pod.
"""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from symphony_charts.placement.demand import Shape
from symphony_charts.placement.filters import labels_match, ports_conflict, untolerated
from symphony_charts.placement.pool import Pool, Taint
from tests.e2e.oracle.cases import MARK, NONE, make_case, node_object, pod_object
from tests.e2e.oracle.live import PODS, Scheduler

__all__ = ["PairReport", "compare_filters"]

NODES = 50
_BATCH = 100


@dataclass
class PairReport:
    """How many pairs were compared, how each plugin refused, and where the two disagreed."""

    pairs: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    disagreements: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Node:
    pool: Pool
    unschedulable: bool
    used: Mapping[str, int]
    ports: frozenset[tuple[str, int]]


def compare_filters(real: Scheduler, pairs: int, seed: int = 1) -> PairReport:
    """Compares at least `pairs` (pod, node) pairs."""
    report = PairReport()
    number = 0
    while report.pairs < pairs:
        _round(real, f"f{seed}-{number}", random.Random(seed * 1000 + number), report)
        number += 1
    return report


def _round(real: Scheduler, name: str, rng: random.Random, report: PairReport) -> None:
    nodes = [_node(rng) for _ in range(NODES)]
    try:
        for number, node in enumerate(nodes):
            host = f"{name}-n{number}"
            real.add_node(node_object(host, node.pool, name, unschedulable=node.unschedulable))
            if node.used:
                pod = pod_object(f"{host}-there", _shape_of(node), name, "k0")
                pod["spec"] |= {"nodeName": host}
                real.api.create(PODS, pod)
        shapes = [_probe(rng) for _ in range(_BATCH)]
        time.sleep(1.0)  # the scheduler's view of the nodes is behind ours by some milliseconds
        for number, shape in enumerate(shapes):
            real.api.create(PODS, pod_object(f"{name}-p{number}", shape, name, "k1"))
        for number, message in _messages(real, name, len(shapes)).items():
            told, ours = _parse(message), Counter(_reasons(shapes[number], nodes))
            report.pairs += len(nodes)
            report.reasons.update(ours)
            if told != ours:
                report.disagreements.append(f"{shapes[number]}\n  scheduler: {told}\n  planner:   {ours}")
    finally:
        real.clear(name)


def _node(rng: random.Random) -> _Node:
    pool = make_case(rng.randrange(1 << 30), most_nodes=3).pools.pools[0]
    taints = [taint for taint in pool.taints if rng.random() < 0.3]
    if rng.random() < 0.1:
        taints.append(Taint(key="rack", value=str(rng.randint(1, 4)), effect=rng.choice(("NoSchedule", "NoExecute"))))
    used: dict[str, int] = {}
    if rng.random() < 0.5:
        used = {
            "cpu": pool.allocatable["cpu"] // rng.randint(1, 3),
            "memory": pool.allocatable["memory"] // 2,
            "pods": 1,
        }
    ports = frozenset({("TCP", 8080)}) if used and rng.random() < 0.8 else frozenset()
    return _Node(replace(pool, taints=tuple(taints)), rng.random() < 0.15, used, ports)


def _shape_of(node: _Node) -> Shape:
    return Shape(requests=tuple(sorted(node.used.items())), ports=node.ports)


def _probe(rng: random.Random) -> Shape:
    shape = make_case(rng.randrange(1 << 30)).demands[0].shape
    asks = {**dict(shape.requests), NONE: 1}
    ports = frozenset({("TCP", 8080)}) if rng.random() < 0.7 else frozenset()
    return replace(shape, requests=tuple(sorted(asks.items())), ports=ports)


def _reasons(shape: Shape, nodes: list[_Node]) -> list[str]:
    """What the planner's filters say, node by node, in the words and the order of the scheduler."""
    found = []
    for node in nodes:
        taint = untolerated(shape.tolerations, node.pool.taints)
        if node.unschedulable:
            found.append("unschedulable")
        elif taint is not None:
            found.append("taint")
        elif not labels_match(dict(shape.selector), shape.affinity, node.pool.labels):
            found.append("affinity")
        elif ports_conflict(shape.ports, node.ports):
            found.append("ports")
        else:
            free = {key: amount - node.used.get(key, 0) for key, amount in node.pool.allocatable.items()}
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
    """``0/50 nodes are available: 3 Insufficient cpu, ...`` as counts; what follows the first sentence is no reason."""
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


def _messages(real: Scheduler, name: str, expected: int) -> dict[int, str]:
    deadline = time.monotonic() + 60
    while True:
        found: dict[int, str] = {}
        for pod in real.pods(name):
            if pod["metadata"]["labels"]["kind"] != "k1":
                continue
            for condition in pod.get("status", {}).get("conditions", []):
                if condition["type"] == "PodScheduled" and condition.get("message"):
                    found[int(pod["metadata"]["name"].rsplit("-p", 1)[1])] = condition["message"]
        if len(found) == expected:
            return found
        if time.monotonic() > deadline:
            raise TimeoutError(f"{name}: {len(found)} of {expected} pods have been looked at; {MARK}")
        time.sleep(0.2)
