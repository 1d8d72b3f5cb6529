"""Random node pools, both as a pools.yaml and as the nodes of the pools."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from symphony_charts.placement.pools.pool import Pool, Pools
from symphony_charts.placement.pools.readers import pools_of_data
from tests.e2e.rig.api import Object

MARK = "oracle.example/case"
"""Label and taint that keep the cases apart in one cluster."""
GPU = "nvidia.com/gpu"
KEYS = {"disk": ("ssd", "hdd"), "size": ("1", "4", "16"), "team": ("rl", "cv")}
ZONES = ("z-a", "z-b", "z-c")
_MIB = 1 << 20
_TAINTS = (
    {"key": "team", "value": "rl", "effect": "NoSchedule"},
    {"key": "busy", "effect": "NoExecute"},
    {"key": "soft", "effect": "PreferNoSchedule"},
)


@dataclass(frozen=True, kw_only=True)
class NodePool:
    """One pool: its `entry` in the file, and `count` nodes that each offer `free` (millicores, bytes, numbers)."""

    name: str
    entry: Mapping[str, object]
    free: Mapping[str, int]
    count: int
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Mapping[str, str]] = ()
    zones: Sequence[str] = ()


def as_file(pools: Sequence[NodePool]) -> dict[str, object]:
    """Return the pools.yaml of these pools; no system pods run on the nodes of the tests."""
    return {"kube_system": "elsewhere", "pools": [dict(pool.entry) for pool in pools]}


def read(pools: Sequence[NodePool]) -> Pools:
    return pools_of_data(as_file(pools))


def random_pools(rng: random.Random, *, most_nodes: int = 50) -> list[NodePool]:
    """Return one to four pools, mostly with few nodes in total: a scheduler finds its surprises there."""
    number = rng.choice((1, 1, 2, 2, 3, 4))
    left = budget = rng.choice((2, 3, 4, 6, 10, 20, most_nodes))
    pools = []
    for index in range(number):
        count = max(1, min(left - (number - index - 1), rng.randint(1, max(1, budget // number))))
        left -= count
        is_machine = rng.random() < 0.15
        pools.append(of_machine(f"p{index}", _machine(rng), count) if is_machine else _stated(rng, f"p{index}", count))
    return pools


def _machine(rng: random.Random) -> dict[str, object]:
    plain: dict[str, object] = {"machine_type": rng.choice(("n1-standard-8", "n2-standard-4", "e2-standard-2"))}
    gpus: dict[str, object] = {
        "machine_type": "n1-standard-8",
        "gpu": {"type": "nvidia-tesla-v100", "count": rng.choice((1, 2, 4))},
    }
    return rng.choice((plain, plain, gpus))


def of_machine(name: str, machine: Mapping[str, object], count: int) -> NodePool:
    """Return nodes of a machine of the catalogue, with the allocatable resources from our own model."""
    entry = {"name": name, "max_nodes": count, **machine}
    (pool,) = pools_of_data({"pools": [entry]}).pools
    return NodePool(name=name, entry=entry, free=pool.usable, count=count, labels=pool.labels, taints=_taints_of(pool))


def _taints_of(pool: Pool) -> list[dict[str, str]]:
    return [{"key": t.key, "effect": t.effect, **({"value": t.value} if t.value else {})} for t in pool.taints]


def _stated(rng: random.Random, name: str, count: int) -> NodePool:
    cpu = rng.choice((2, 4, 8, 16)) * 1000 - rng.choice((0, 80, 490))
    whole = {"cpu": cpu, "memory": rng.choice((2, 4, 16, 64)) * 1024, "pods": rng.choice((3, 8, 30, 110))}
    system = rng.choice(({}, {}, {"cpu": 300, "memory": 256, "pods": 1}))
    offer: dict[str, str | int] = {"cpu": f"{cpu}m", "memory": f"{whole['memory']}Mi"}
    free = {key: amount - system.get(key, 0) for key, amount in whole.items()}
    taints = [taint for taint in _TAINTS if rng.random() < 0.15]
    if rng.random() < 0.25:
        offer[GPU] = free[GPU] = rng.choice((1, 2, 4, 8))
        taints.append({"key": GPU, "value": "present", "effect": "NoSchedule"})
    if rng.random() < 0.2:
        offer["ephemeral-storage"], free["ephemeral-storage"] = "20Gi", 20 << 30
    labels = {key: rng.choice(values) for key, values in KEYS.items() if rng.random() < 0.6} | {"pool": name}
    labels |= rng.choice(({"cloud.google.com/gke-nodepool": name}, {"name": name}))
    zones = rng.sample(ZONES, rng.choice((0, 0, 1, 2)))
    entry: dict[str, object] = {
        "name": name,
        "allocatable": offer,
        "max_pods": whole["pods"],
        "labels": labels,
        "taints": taints,
        "nodes": count,
        "zones": zones,
        **({"gpu": {"type": "nvidia-l4", "count": free[GPU]}} if GPU in free else {}),
    }
    if system:
        entry["system"] = {"cpu": f"{system['cpu']}m", "memory": f"{system['memory']}Mi", "pods": system["pods"]}
    free["memory"] *= _MIB
    return NodePool(name=name, entry=entry, free=free, count=count, labels=labels, taints=taints, zones=zones)


def node_objects(pools: Sequence[NodePool], case: str) -> Iterator[Object]:
    """Yield ready nodes of the pools that take only pods of `case`, with the labels that every kubelet sets."""
    for pool in pools:
        for number in range(pool.count):
            yield _node(f"{case}-{pool.name}-{number}", pool, number, case)


def _node(name: str, pool: NodePool, number: int, case: str) -> Object:
    size = {key: f"{amount}m" if key == "cpu" else str(amount) for key, amount in pool.free.items()}
    labels = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", **pool.labels}
    if pool.zones:
        labels["topology.kubernetes.io/zone"] = pool.zones[number % len(pool.zones)]
    mark = {"key": MARK, "value": case, "effect": "NoSchedule"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**labels, MARK: case, "kubernetes.io/hostname": name}},
        "spec": {"taints": [*(dict(taint) for taint in pool.taints), mark]},
        "status": {
            "capacity": size,
            "allocatable": size,
            "conditions": [{"type": "Ready", "status": "True", "reason": "Oracle"}],
        },
    }
