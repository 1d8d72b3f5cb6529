"""The real scheduler's treatment of pods: the pods that it binds, and the reasons for the others."""

from __future__ import annotations

import contextlib
import queue
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.e2e.oracle.nodes import MARK, NodePool, node_objects
from tests.e2e.oracle.pods import GROUP, PodOf, is_looked_at, put_into
from tests.e2e.rig.api import Api, Object
from tests.e2e.rig.control_plane import ControlPlane

SETTLE_S = 90.0
HEAVY = "oracle-heavy"
"""A runtime class whose pods take half a core more than they request."""
_NOW: Object = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}


class Scheduler:
    """A kube-scheduler without controllers: only the oracle writes nodes and pods.

    Every case has its own namespace while it runs, since constraints between pods count within one.
    """

    def __init__(self, api: Api, namespaces: int) -> None:
        self.api = api
        self._namespaces: queue.SimpleQueue[str] = queue.SimpleQueue()
        for number in range(namespaces):
            self._add_namespace(f"oracle-{number}")
        node = {"overhead": {"podFixed": {"cpu": "500m"}}, "handler": "heavy", "metadata": {"name": HEAVY}}
        api.create(
            "/apis/node.k8s.io/v1/runtimeclasses", {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", **node}
        )

    def _add_namespace(self, name: str) -> None:
        self.api.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        self.api.create(f"/api/v1/namespaces/{name}/serviceaccounts", account)
        self._namespaces.put(name)

    @contextlib.contextmanager
    def namespace(self) -> Iterator[str]:
        """Yield a namespace that no other case uses meanwhile."""
        name = self._namespaces.get()
        try:
            yield f"/api/v1/namespaces/{name}/pods"
        finally:
            self._namespaces.put(name)

    def outcome(
        self,
        pools: Sequence[NodePool],
        pods: Sequence[PodOf],
        case: str,
        *,
        is_gang: bool,
        patience_s: float = 1.0,
        residents: Sequence[Object] = (),
    ) -> Counter[str]:
        """Return the number of bound pods per group, when created in this order after the `residents`.

        Refused pods get `patience_s` more: the scheduler may have looked at one before it had seen all nodes.
        """
        with self.namespace() as place:
            try:
                for node in node_objects(pools, case):
                    self.add_node(node)
                made = [put_into(case, pod, f"{case}-{n}", is_gang=is_gang) for n, pod in enumerate(pods)]
                made = [*residents, *made]
                for pod in made:
                    self.api.create(place, pod)
                return self._settled(place, case, len(made), patience_s)
            finally:
                self.clear(place, case)

    def add_node(self, node: Object) -> None:
        """Create a ready node; admission taints new nodes as not ready, and no controller removes the taint here."""
        self.api.create("/api/v1/nodes", node)
        self.api.merge(f"/api/v1/nodes/{node['metadata']['name']}", {"spec": {"taints": node["spec"]["taints"]}})

    def pods(self, place: str, case: str) -> list[Object]:
        return list(self.api.get(f"{place}?labelSelector={MARK}%3D{case}")["items"])

    def clear(self, place: str, case: str) -> None:
        self.api.delete(f"{place}?labelSelector={MARK}%3D{case}", _NOW)
        self.api.delete(f"/api/v1/nodes?labelSelector={MARK}%3D{case}", _NOW)

    def _settled(self, place: str, case: str, expected: int, patience_s: float) -> Counter[str]:
        """Return the bound pods by group, once every pod is bound or refused and nothing changed for `patience_s`."""
        moved_at, before = time.monotonic(), (-1, -1)
        while True:
            pods = self.pods(place, case)
            bound = [pod for pod in pods if pod["spec"].get("nodeName")]
            waiting = sum(_is_refused(pod) or not is_looked_at(pod) for pod in pods if not pod["spec"].get("nodeName"))
            if (len(bound), waiting) != before:
                moved_at, before = time.monotonic(), (len(bound), waiting)
            still_s = time.monotonic() - moved_at
            if len(bound) == expected or (len(bound) + waiting == expected and still_s > patience_s):
                break
            if still_s > SETTLE_S:
                raise TimeoutError(f"{case}: {len(bound)} bound and {waiting} refused of {expected}, no more moves")
            time.sleep(0.15)
        return Counter(pod["metadata"]["labels"][GROUP] for pod in bound)


def _is_refused(pod: Mapping[str, Object]) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(c["type"] == "PodScheduled" and c.get("reason") == "Unschedulable" for c in conditions)


@contextlib.contextmanager
def scheduler(folder: Path, *, namespaces: int = 8) -> Iterator[Scheduler]:
    """Run a control plane in `folder` without controllers: only this program taints nodes or deletes pods."""
    plane = ControlPlane(folder=folder)
    plane.up(dies_with_us=True)
    try:
        for daemon in plane.daemons():
            if daemon.name == "kube-controller-manager":
                daemon.stop()
        with plane.api() as api:
            yield Scheduler(api, namespaces)
    finally:
        plane.down()
