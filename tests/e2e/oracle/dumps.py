"""Random live clusters with present and pending pods: the plan on their dump against the real scheduler."""

from __future__ import annotations

import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from symphony_charts.placement.pools.readers import pools_of_data
from symphony_charts.prepare import prepare_experiment
from symphony_charts.spec.data import from_data
from tests.e2e.oracle.experiments import Report
from tests.e2e.oracle.live import Scheduler
from tests.e2e.oracle.nodes import MARK, ZONES, NodePool, node_objects
from tests.e2e.oracle.pods import PodOf, pods_of_objects, put_into
from tests.e2e.rig.api import Object

_HOST, _ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
_APPS = ("a", "b")


@dataclass(frozen=True, kw_only=True)
class _Dump:
    """A cluster: `present` pods with the number of their node, and pods that are `waiting`."""

    pool: NodePool
    present: Sequence[tuple[int, PodOf]]
    waiting: Sequence[PodOf]

    def residents(self, case: str) -> list[Object]:
        names = [node["metadata"]["name"] for node in node_objects([self.pool], case)]
        pods = [PodOf("present", pod.metadata, {**pod.spec, "nodeName": names[node]}) for node, pod in self.present]
        return [put_into(case, pod, f"{case}-present-{number}", is_gang=False) for number, pod in enumerate(pods)]

    def items(self, case: str) -> list[Object]:
        """Return the objects of `kubectl get nodes,pods -A`."""
        waiting = [put_into(case, pod, f"waiting-{number}", is_gang=False) for number, pod in enumerate(self.waiting)]
        return [*node_objects([self.pool], case), *self.residents(case), *waiting]


def compare_dumps(real: Scheduler, seeds: range, *, workers: int = 8) -> Report:
    """Plan a random experiment on each dump, and give its pods and the waiting ones to the scheduler in two orders."""
    report = Report()
    with ThreadPoolExecutor(workers) as pool:
        for verdicts, faults in pool.map(lambda seed: _compare(real, seed), seeds):
            report.cases += 1
            report.verdicts.update(verdicts)
            report.faults += faults
    return report


def _compare(real: Scheduler, seed: int) -> tuple[list[str], list[tuple[str, str]]]:
    verdicts: list[str] = []
    faults: list[tuple[str, str]] = []
    for order in range(2):
        rng, case = random.Random(seed), f"d{seed}-{order}"
        dump, data = _random_dump(rng), _random_experiment(rng, case)
        pools = pools_of_data({"apiVersion": "v1", "kind": "List", "items": dump.items(case)})
        prepared = prepare_experiment(from_data(data), pools=pools, force=True)
        groups = prepared.plan.groups if prepared.plan else ()
        pods = pods_of_objects(prepared.objects)
        bound = real.outcome(
            [dump.pool],
            [*pods[::-1], *dump.waiting] if order else [*dump.waiting, *pods],
            case,
            is_gang=False,
            residents=dump.residents(case),
            patience_s=2.0,
        )
        told = f"{case}: {bound}\n  {data}\n  {dump}\n  {groups}"
        for group in groups:
            verdicts.append(group.verdict)
            if group.verdict == "PROVEN" and bound[group.name] < group.count:
                faults.append(("false PROVEN", told))
            if group.verdict == "NO" and all(bound[each.name] == each.count for each in groups):
                faults.append(("false NO", told))
    return verdicts, faults


def _random_dump(rng: random.Random) -> _Dump:
    nodes, zones = rng.choice((1, 2, 2, 3)), rng.sample(ZONES, rng.choice((1, 2)))
    free = {"cpu": rng.choice((2, 4)) * 1000, "memory": 16 << 30, "pods": 20}
    pool = NodePool(
        name="p", entry={}, free=free, count=nodes, labels={"cloud.google.com/gke-nodepool": "p"}, zones=zones
    )
    # A dump without any pod is read as one that omits them.
    present = [(node, _pod(rng, "present", 500)) for node in range(nodes) if node == 0 or rng.random() < 0.5]
    waiting = [_pod(rng, "waiting", rng.choice((500, 1000, 3000))) for _ in range(rng.choice((0, 0, 1, 2)))]
    return _Dump(pool=pool, present=present, waiting=waiting)


def _pod(rng: random.Random, group: str, cpu: int) -> PodOf:
    container = {"name": "c", "image": "none", "resources": {"requests": {"cpu": f"{cpu}m", "memory": "64Mi"}}}
    spec = {"containers": [container], **(_apart(rng) if rng.random() < 0.5 else {})}
    return PodOf(group, {"labels": {"app": rng.choice(_APPS)}}, spec)


def _apart(rng: random.Random) -> dict[str, Any]:
    selectors: list[dict[str, Any]] = [
        {},
        {"matchLabels": {"app": rng.choice(_APPS)}},
        {"matchLabels": {"app.kubernetes.io/name": "e"}},
        {"matchExpressions": [{"key": "symph.dev/group", "operator": "NotIn", "values": ["k0"]}]},
        {"matchExpressions": [{"key": "batch.kubernetes.io/job-name", "operator": "Exists"}]},
    ]
    over = rng.choice((_HOST, _HOST, _ZONE, "cloud.google.com/gke-nodepool", "no.such/label"))
    term = {"labelSelector": rng.choice(selectors), "topologyKey": over}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def _random_experiment(rng: random.Random, case: str) -> dict[str, Any]:
    processes = {}
    for number in range(rng.choice((1, 2))):
        processes[f"k{number}"] = {
            "command": ["x"],
            "requests": {"cpu": rng.choice(("500m", "1", "2")), "memory": "64Mi"},
            "replicas": rng.choice((1, 1, 2, 3)),
            "node_selector": {MARK: case},
            "tolerations": [{"key": MARK, "operator": "Exists"}],
            **({"pod_overlay": {"spec": _apart(rng)}} if rng.random() < 0.3 else {}),
        }
    return {"name": "e", "image": "a:1", "on_failure": "continue", "processes": processes}
