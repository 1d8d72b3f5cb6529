"""The nodes of the test cluster: the project's node pools as Node objects, kept alive by leases."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from pathlib import Path

from symphony_charts.placement.pools import readers as inputs
from symphony_charts.placement.pools.pool import Pool
from tests.e2e.rig.api import Api, Object
from tests.e2e.tools.catalog import KUBERNETES

DEFAULT_POOLS = Path(__file__).with_name("pools.yaml")
LEASE_S = 40
"""A node whose lease is older than this is considered lost."""

_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_MOST_NODES = 16
"""Per pool: all nodes of a pool with hundreds of them would show nothing more."""


def read_pools(path: Path) -> tuple[Pool, ...]:
    return inputs.read_pools(path.read_text(), str(path)).pools


def node_names(pool: Pool) -> list[str]:
    return [f"{pool.name}-{index}" for index in range(min(pool.max_nodes or 1, _MOST_NODES))]


def make_node(pool: Pool, name: str, kubelet_port: int) -> Object:
    """Return the Node object called `name`, with the labels and taints of its pool.

    It offers the pool's resources for experiments, since no system pods run here to take their share.
    """
    left = {key: amount - pool.system.get(key, 0) for key, amount in pool.allocatable.items()}
    offered = {key: f"{amount}m" if key == "cpu" else str(amount) for key, amount in left.items()}
    taints = [{"key": t.key, "value": t.value, "effect": t.effect} for t in pool.taints]
    labels = {"kubernetes.io/arch": pool.arch, **pool.labels, "kubernetes.io/hostname": name}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": taints},
        "status": _status(name, offered, pool.arch, kubelet_port),
    }


def now(*, micro: bool = False) -> str:
    """Return the current time as Kubernetes writes it: to the second, or to the microsecond as leases need it."""
    moment = dt.datetime.now(dt.timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ" if micro else "%Y-%m-%dT%H:%M:%SZ")


def register(api: Api, pools: Iterable[Pool], kubelet_port: int) -> list[str]:
    """Make the nodes of `pools` with their leases; return their names."""
    names = []
    for pool in pools:
        for name in node_names(pool):
            node = make_node(pool, name, kubelet_port)
            api.create("/api/v1/nodes", node, exists_ok=True)
            renew(api, name)
            api.merge(f"/api/v1/nodes/{name}/status", {"status": node["status"]})
            names.append(name)
    return names


def renew(api: Api, name: str) -> None:
    """Renew the node's lease for the next `LEASE_S` seconds."""
    spec = {"holderIdentity": name, "leaseDurationSeconds": LEASE_S, "renewTime": now(micro=True)}
    if api.merge(f"{_LEASES}/{name}", {"spec": spec}) is None:
        api.create(_LEASES, {"metadata": {"name": name}, "spec": spec}, exists_ok=True)


def _status(name: str, offered: dict[str, str], arch: str, kubelet_port: int) -> Object:
    facts = ("bootID", "kernelVersion", "kubeProxyVersion", "machineID", "osImage", "systemUUID")
    good = [("Ready", "True", "KubeletReady")]
    good += [(f"{kind}Pressure", "False", f"Enough{kind}") for kind in ("Memory", "Disk", "PID")]
    return {
        "capacity": offered,
        "allocatable": offered,
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}, {"type": "Hostname", "address": name}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet_port}},
        "nodeInfo": {
            **dict.fromkeys(facts, "process"),
            "containerRuntimeVersion": "process://1",
            "kubeletVersion": f"v{KUBERNETES}",
            "operatingSystem": "linux",
            "architecture": arch,
        },
        "conditions": [
            {"type": kind, "status": status, "reason": why, "lastHeartbeatTime": now(), "lastTransitionTime": now()}
            for kind, status, why in good
        ],
    }
