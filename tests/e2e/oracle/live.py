"""What the real scheduler does with a case: which pods it binds, and why it leaves others waiting."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.e2e.oracle.cases import MARK, Case, node_object, pod_object
from tests.e2e.rig.api import Api, Object
from tests.e2e.rig.control_plane import ControlPlane

__all__ = ["Scheduler", "scheduler"]

PODS = "/api/v1/namespaces/default/pods"
SETTLE_S = 60.0


class Scheduler:
    """A kube-scheduler with nobody beside it: nodes and pods are objects that only the oracle writes."""

    def __init__(self, api: Api) -> None:
        self.api = api

    def outcome(self, case: Case, order: Sequence[int], name: str, *, patience_s: float = 1.0) -> Counter[int]:
        """How many pods of each demand are bound, when they are created in `order` (one entry a pod: its demand).

        Pods that were refused get `patience_s` more: one may be looked at before the scheduler has seen all nodes.
        """
        try:
            for pool in case.pools.pools:
                for number in range(pool.max_nodes):
                    self.add_node(node_object(f"{name}-{pool.name}-{number}", pool, name))
            for number, demand in enumerate(order):
                self.api.create(PODS, pod_object(f"{name}-{number}", case.demands[demand].shape, name, f"k{demand}"))
            return self._settled(name, len(order), patience_s)
        finally:
            self.clear(name)

    def add_node(self, node: Object) -> None:
        """A ready node; admission taints new nodes as not ready, which nobody else would take back."""
        self.api.create("/api/v1/nodes", node)
        self.api.merge(f"/api/v1/nodes/{node['metadata']['name']}", {"spec": {"taints": node["spec"]["taints"]}})

    def pods(self, name: str) -> list[Object]:
        """The pods of a case."""
        found = self.api.get(f"{PODS}?labelSelector={MARK}%3D{name}")["items"]
        return list(found)

    def clear(self, name: str) -> None:
        """Delete everything of a case."""
        now: Object = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
        self.api.delete(f"{PODS}?labelSelector={MARK}%3D{name}", now)
        self.api.delete(f"/api/v1/nodes?labelSelector={MARK}%3D{name}", now)

    def _settled(self, name: str, expected: int, patience_s: float) -> Counter[int]:
        """The bound pods by demand, once every pod is bound or refused and nothing moved for `patience_s`."""
        moved_at, before = time.monotonic(), (-1, -1)
        while True:
            pods = self.pods(name)
            bound = [pod for pod in pods if pod["spec"].get("nodeName")]
            waiting = sum(_is_refused(pod) for pod in pods if not pod["spec"].get("nodeName"))
            if (len(bound), waiting) != before:
                moved_at, before = time.monotonic(), (len(bound), waiting)
            still_s = time.monotonic() - moved_at
            if len(bound) == expected or (len(bound) + waiting == expected and still_s > patience_s):
                break
            if still_s > SETTLE_S:
                raise TimeoutError(f"{name}: {len(bound)} bound and {waiting} refused of {expected}, no more moves")
            time.sleep(0.1)
        return Counter(int(pod["metadata"]["labels"]["kind"][1:]) for pod in bound)


def _is_refused(pod: Object) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(c["type"] == "PodScheduled" and c.get("reason") == "Unschedulable" for c in conditions)


@contextlib.contextmanager
def scheduler(folder: Path) -> Iterator[Scheduler]:
    """A control plane in `folder` whose controllers are stopped: no one taints nodes or deletes pods but us."""
    plane = ControlPlane.up(folder, dies_with_us=True)
    try:
        for daemon in plane.daemons():
            if daemon.name == "kube-controller-manager":
                daemon.stop()
        with plane.api() as api:
            yield Scheduler(api)
    finally:
        plane.down()
