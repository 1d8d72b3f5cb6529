"""The nodes of the test cluster: pools read from YAML, turned into Node objects, kept alive by leases."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tests.e2e.rig.api import Api, Object
from tests.e2e.tools.catalog import KUBERNETES

__all__ = ["DEFAULT_POOLS", "LEASE_S", "Pool", "now", "read_pools", "register", "renew"]

DEFAULT_POOLS = Path(__file__).with_name("pools.yaml")
LEASE_S = 40
"""A node whose lease is older than this is taken for lost."""

_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_GPU = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """`nodes` equal nodes; `cpu` and `memory` are the quantities that each offers to pods."""

    name: str
    nodes: int = 1
    machine: str = "e2-standard-8"
    cpu: str = "8"
    memory: str = "32Gi"
    gpus: int = 0
    accelerator: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()

    def node_names(self) -> list[str]:
        """The names of its nodes."""
        return [f"{self.name}-{index}" for index in range(self.nodes)]

    def node(self, name: str, kubelet_port: int) -> Object:
        """The Node object called `name`, labelled and tainted as GKE does it."""
        labels = {
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            "node.kubernetes.io/instance-type": self.machine,
            "cloud.google.com/gke-nodepool": self.name,
            **({"cloud.google.com/gke-accelerator": self.accelerator} if self.accelerator else {}),
            **self.labels,
        }
        taint = {"key": _GPU, "value": "present", "effect": "NoSchedule"}
        taints = [*self.taints, *([taint] if self.gpus else [])]
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": {"taints": taints},
            "status": self._status(name, kubelet_port),
        }

    def _status(self, name: str, kubelet_port: int) -> Object:
        size = {"cpu": self.cpu, "memory": self.memory, "pods": "110", "ephemeral-storage": "100Gi"}
        if self.gpus:
            size[_GPU] = str(self.gpus)
        facts = ("bootID", "kernelVersion", "kubeProxyVersion", "machineID", "osImage", "systemUUID")
        good = [("Ready", "True", "KubeletReady")]
        good += [(f"{kind}Pressure", "False", f"Enough{kind}") for kind in ("Memory", "Disk", "PID")]
        return {
            "capacity": size,
            "allocatable": size,
            "addresses": [
                {"type": "InternalIP", "address": "127.0.0.1"},
                {"type": "Hostname", "address": name},
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet_port}},
            "nodeInfo": {
                **dict.fromkeys(facts, "process"),
                "containerRuntimeVersion": "process://1",
                "kubeletVersion": f"v{KUBERNETES}",
                "operatingSystem": "linux",
                "architecture": "amd64",
            },
            "conditions": [
                {"type": kind, "status": status, "reason": why, "lastHeartbeatTime": now(), "lastTransitionTime": now()}
                for kind, status, why in good
            ],
        }


def read_pools(path: Path) -> list[Pool]:
    """The pools of a YAML file: a list `pools` of the fields of `Pool`."""
    rows = yaml.safe_load(path.read_text())["pools"]
    return [Pool(**{**row, "taints": tuple(row.get("taints", ()))}) for row in rows]


def now(*, micro: bool = False) -> str:
    """This moment as Kubernetes writes it: to the second, or to the microsecond as leases want it."""
    moment = dt.datetime.now(dt.timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ" if micro else "%Y-%m-%dT%H:%M:%SZ")


def register(api: Api, pools: list[Pool], kubelet_port: int) -> list[str]:
    """Make the nodes of `pools` with their leases; their names."""
    names = []
    for pool in pools:
        for name in pool.node_names():
            node = pool.node(name, kubelet_port)
            api.create("/api/v1/nodes", node, exists_ok=True)
            renew(api, name)
            api.merge(f"/api/v1/nodes/{name}/status", {"status": node["status"]})
            names.append(name)
    return names


def renew(api: Api, name: str) -> None:
    """Say that the node lives, for the next `LEASE_S` seconds."""
    spec = {"holderIdentity": name, "leaseDurationSeconds": LEASE_S, "renewTime": now(micro=True)}
    if api.merge(f"{_LEASES}/{name}", {"spec": spec}) is None:
        api.create(_LEASES, {"metadata": {"name": name}, "spec": spec}, exists_ok=True)
