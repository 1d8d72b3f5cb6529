"""Random clusters and workloads, once as the planner sees them and once as Kubernetes objects."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from symphony_charts.placement.demand import Demand, Shape
from symphony_charts.placement.filters import Requirement
from symphony_charts.placement.pool import Pool, Pools, Taint
from symphony_charts.placement.rules import DEVICE_TOLERATIONS
from symphony_charts.spec.model import Toleration
from tests.e2e.rig.api import Object

__all__ = ["MARK", "NONE", "Case", "make_case", "node_object", "pod_object"]

MIB = 1 << 20
MARK = "oracle.example/case"
"""Label and taint that keep the cases apart in one cluster."""
NONE = "oracle.example/none"
"""A resource that no node has."""
KEYS = {"disk": ("ssd", "hdd"), "size": ("1", "4", "16"), "team": ("rl", "cv")}
TAINTS = (Taint(key="team", value="rl"), Taint(key="busy"), Taint(key="soft", effect="PreferNoSchedule"))
GPU = "nvidia.com/gpu"


@dataclass(frozen=True)
class Case:
    """One cluster and what shall run there; demand i is named ``k<i>``."""

    seed: int
    pools: Pools
    demands: tuple[Demand, ...]

    @property
    def pods(self) -> int:
        """How many pods there are."""
        return sum(demand.count for demand in self.demands)


def make_case(seed: int, *, most_nodes: int = 50) -> Case:
    """The case of `seed`; the load is chosen near what the nodes can take, where verdicts are interesting.

    Most cases are small, since a scheduler finds its surprises there; one in thirty may have 500 pods.
    """
    rng = random.Random(seed)
    most_pods = 500 if seed % 30 == 0 else rng.choice((12, 24, 24, 40, 60))
    pools = [_pool(rng, number) for number in range(rng.choice((1, 1, 2, 2, 3, 4)))]
    budget = rng.choice((2, 3, 4, 6, 10, 20, most_nodes))
    sized, left = [], budget
    for number, pool in enumerate(pools):
        count = max(1, min(left - (len(pools) - number - 1), rng.randint(1, max(1, budget // len(pools)))))
        left -= count
        sized.append(_resized(pool, count))
    demands = _demands(rng, sized, most_pods)
    return Case(seed, Pools(pools=tuple(sized), source=f"case {seed}"), demands)


def _pool(rng: random.Random, number: int) -> Pool:
    cpu = rng.choice((2, 4, 8, 16)) * 1000 - rng.choice((0, 80, 490))
    offered = {"cpu": cpu, "memory": rng.choice((2, 4, 16, 64)) * 1024 * MIB, "pods": rng.choice((3, 8, 30, 110))}
    taints = [taint for taint in TAINTS if rng.random() < 0.15]
    labels = {key: rng.choice(values) for key, values in KEYS.items() if rng.random() < 0.6}
    if rng.random() < 0.25:
        offered[GPU] = rng.choice((1, 2, 4, 8))
        taints.append(Taint(key=GPU, value="present"))
    name = f"p{number}"
    return Pool(
        name=name,
        allocatable=offered,
        accuracy="stated",
        labels={**labels, "pool": name, "kubernetes.io/os": "linux"},
        taints=tuple(taints),
        gpus=offered.get(GPU, 0),
    )


def _resized(pool: Pool, count: int) -> Pool:
    return replace(pool, min_nodes=count, max_nodes=count)


def _demands(rng: random.Random, pools: Sequence[Pool], most_pods: int) -> tuple[Demand, ...]:
    capacity = sum(pool.allocatable["cpu"] * pool.max_nodes for pool in pools)
    load = rng.choice((0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 1.0)) * capacity
    kinds = rng.choice((1, 1, 2, 2, 3, 4, 6))
    found: dict[Shape, int] = {}
    for _ in range(kinds):
        shape = _shape(rng, pools)
        count = max(1, min(int(load / kinds / max(shape.amount("cpu"), 50)), most_pods // kinds))
        found[shape] = found.get(shape, 0) + rng.randint(max(1, count // 2), max(1, count))
    return tuple(Demand(shape, [(f"k{number}", count)]) for number, (shape, count) in enumerate(found.items()))


def _shape(rng: random.Random, pools: Sequence[Pool]) -> Shape:
    like = rng.choice(pools)
    parts = rng.choice((1, 1, 2, 3, 4, 7, 10))
    cpu = max(10, like.allocatable["cpu"] // parts - rng.choice((0, 0, 10, 100)))
    memory = like.allocatable["memory"] // rng.choice((1, 2, parts, parts, 20)) - rng.choice((0, MIB))
    asks = {"cpu": cpu + rng.choice((0, 0, 0, 0, 0, 0, 0, 1)), "memory": memory, "pods": 1}
    if like.gpus and rng.random() < 0.7:
        asks[GPU] = rng.choice((1, 1, like.gpus))
    tolerations = tuple(
        Toleration(key=taint.key, operator="Exists", effect=taint.effect)
        for taint in like.taints
        if rng.random() < 0.97
    )
    if GPU in asks:  # as the planner writes it, and as GKE's admission would add it
        tolerations = (*(one for one in tolerations if one.key != GPU), DEVICE_TOLERATIONS[GPU])
    selector: tuple[tuple[str, str], ...] = ()
    if rng.random() < 0.3:
        selector = (("pool", like.name),)
    elif like.labels.keys() & KEYS.keys() and rng.random() < 0.3:
        key = sorted(like.labels.keys() & KEYS.keys())[0]
        selector = ((key, like.labels[key]),)
    return Shape(
        requests=tuple(sorted(asks.items())),
        selector=selector,
        affinity=_affinity(rng) if rng.random() < 0.1 else None,
        tolerations=tolerations,
        ports=frozenset({("TCP", 8080)}) if rng.random() < 0.1 else frozenset(),
    )


def _affinity(rng: random.Random) -> tuple[tuple[Requirement, ...], ...]:
    key = rng.choice(sorted(KEYS))
    operator = rng.choice(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
    values: tuple[str, ...] = ()
    if operator in ("In", "NotIn"):
        values = (rng.choice(KEYS[key]),)
    elif operator in ("Gt", "Lt"):
        key, values = "size", (rng.choice(("1", "4", "8")),)
    terms = ((Requirement(key, operator, values),),)
    return terms if rng.random() < 0.6 else (*terms, (Requirement("team", "In", ("rl",)),))


def node_object(name: str, pool: Pool, case: str, *, unschedulable: bool = False) -> Object:
    """A ready node of `pool` that takes pods of `case` alone."""
    size = {key: f"{amount}m" if key == "cpu" else str(amount) for key, amount in pool.allocatable.items()}
    taints = [{"key": t.key, "effect": t.effect, **({"value": t.value} if t.value else {})} for t in pool.taints]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**pool.labels, MARK: case, "kubernetes.io/hostname": name}},
        "spec": {
            "taints": [*taints, {"key": MARK, "value": case, "effect": "NoSchedule"}],
            **({"unschedulable": True} if unschedulable else {}),
        },
        "status": {
            "capacity": size,
            "allocatable": size,
            "conditions": [{"type": "Ready", "status": "True", "reason": "Oracle"}],
        },
    }


def pod_object(name: str, shape: Shape, case: str, kind: str) -> Object:
    """A pod of `shape` that may run on the nodes of `case` alone."""
    requests = {key: f"{amount}m" if key == "cpu" else str(amount) for key, amount in shape.requests if key != "pods"}
    limits = {key: amount for key, amount in requests.items() if "/" in key}
    tolerations = [
        {"key": t.key, "operator": t.operator, **({"effect": t.effect} if t.effect else {})} for t in shape.tolerations
    ]
    container: Object = {"name": "c", "image": "none", "resources": {"requests": requests, "limits": limits}}
    if shape.ports:
        container["ports"] = [{"containerPort": port, "hostPort": port} for _, port in sorted(shape.ports)]
    spec: Object = {
        "containers": [container],
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 0,
        "nodeSelector": {**dict(shape.selector), MARK: case},
        "tolerations": [*tolerations, {"key": MARK, "operator": "Equal", "value": case, "effect": "NoSchedule"}],
    }
    if shape.affinity is not None:
        terms = [
            {"matchExpressions": [{"key": r.key, "operator": r.operator, "values": list(r.values)} for r in term]}
            for term in shape.affinity
        ]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        spec["affinity"] = {"nodeAffinity": required}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {MARK: case, "kind": kind}},
        "spec": spec,
    }
