"""A pool describes nodes to the rest of the package, whatever file it was read from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from symphony_charts.placement.machines.catalog import Catalog, default_catalog
from symphony_charts.placement.machines.prices import PriceTable, default_prices
from symphony_charts.placement.machines.system_pods import memory_margin

__all__ = [
    "ELSEWHERE",
    "GKE_POOL_LABEL",
    "Accuracy",
    "Amounts",
    "Doubt",
    "HostPort",
    "Node",
    "Pool",
    "Pools",
    "Provisioning",
    "Taint",
    "Tpu",
    "Weight",
]

# The way in for clusters whose pools no reader knows.
ELSEWHERE = "give `kubectl get nodes -o json`, or a pools.yaml that says `allocatable`"
GKE_POOL_LABEL = "cloud.google.com/gke-nodepool"

# Amounts of one node or pod: cpu in millicores, memory and ephemeral-storage in bytes, pods and devices by number.
Amounts = dict[str, int]
Accuracy = Literal["live", "stated", "effective", "model", "guess"]
Provisioning = Literal["standard", "spot", "preemptible", "flex-start"]
Weight = Literal["UNKNOWN", "PACKABLE", "PROVEN"]


class HostPort(NamedTuple):
    """A port of the node; `address` is one of the node's, empty for all of them."""

    protocol: str
    number: int
    address: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taint:
    """A node taint in Kubernetes' spelling."""

    key: str
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """Something a file says of a pool that the model does not know, or does not say: the most a verdict may then be.

    `may_grow`: there may be more nodes than are counted, or they may be open to more pods, so that nothing can be
    excluded. `label`: only pods that ask for this label are concerned; ``*`` for any that the pool does not show.
    `of_system`: it is about what system pods take, so that a user who says that himself has settled it.
    """

    text: str
    weight: Weight = "UNKNOWN"
    may_grow: bool = False
    label: str = ""
    of_system: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Tpu:
    """The TPU slice that a pool is: `hosts` VMs of `chips` each in `topology`; a slice of several hosts is one unit."""

    type: str
    topology: str
    chips: int
    hosts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One live node; `free` is what its present pods leave, `ports` the host ports they hold."""

    name: str
    allocatable: Mapping[str, int]
    free: Mapping[str, int]
    labels: Mapping[str, str]
    taints: tuple[Taint, ...] = ()
    ports: frozenset[HostPort] = frozenset()
    schedulable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """One node pool: what each of its nodes offers, how many there can be, and who may run there.

    `allocatable` is one node's, `system` what system pods take of it; `usable` is what is left for experiments.
    `source` says where it was read (``cluster.tf.json:12, resource.google_container_node_pool.std8``). `min_nodes`
    and `max_nodes` count the whole pool over all `zones`. `accuracy` tells how `allocatable` is known: read from live
    nodes, stated by the user, computed with GKE's own effective reservation, by the model, or guessed.
    `nodes` are the live ones, if known: they are part of `max_nodes`; `is_load_known` where what runs on them is.
    """

    name: str
    source: str = ""
    machine_type: str = ""
    vcpu: int = 0
    memory_mib: int = 0
    arch: str = "amd64"
    allocatable: Mapping[str, int]
    accuracy: Accuracy = "model"
    system: Mapping[str, int] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    zones: tuple[str, ...] = ()
    min_nodes: int = 0
    max_nodes: int = 0
    provisioning: Provisioning = "standard"
    gpu_type: str = ""
    gpus: int = 0
    attached_gpus: int = 0
    tpu: Tpu | None = None
    placement: str = ""
    reservation: str = ""
    queued: bool = False
    selector: tuple[str, str] | None = None
    nodes: tuple[Node, ...] = ()
    notes: tuple[str, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    local_ssds: int = 0
    is_load_known: bool = False

    @property
    def usable(self) -> Amounts:
        """What one node of the pool leaves for experiments: allocatable, minus system pods, minus the margin."""
        left = {name: amount - self.system.get(name, 0) for name, amount in self.allocatable.items()}
        left["memory"] = left.get("memory", 0) - memory_margin(self.allocatable.get("memory", 0), self.accuracy)
        return {name: max(0, amount) for name, amount in left.items()}

    @property
    def region(self) -> str:
        """The region of the pool's zones or labels, or an empty string."""
        label = self.labels.get("topology.kubernetes.io/region", "")
        if label or not self.zones:
            return label
        zone = self.zones[0]
        return zone.rsplit("-", 1)[0] if zone.count("-") >= 2 else zone

    @property
    def is_spot(self) -> bool:
        """Whether its nodes are those that may be taken back, which cost less."""
        return self.provisioning in ("spot", "preemptible")

    @property
    def is_multi_host(self) -> bool:
        """Whether the pool is a TPU slice of several hosts, which is filled as a whole or not at all."""
        return self.tpu is not None and self.tpu.hosts > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Pools:
    """All node pools that were read, in the order of the file, with what was noticed on the way.

    `grows` says why there may be pools that no file shows; `wanted` are pools that a file names and does not describe,
    with the place where it does. `workloads` are objects that run beside the experiment, where the user gave them, else
    it is None.
    """

    pools: tuple[Pool, ...] = ()
    grows: tuple[str, ...] = ()
    wanted: tuple[tuple[str, str], ...] = ()
    workloads: tuple[Mapping[str, object], ...] | None = None
    source: str = ""
    catalog: Catalog = field(default_factory=default_catalog)
    prices: PriceTable = field(default_factory=default_prices)
    notes: tuple[str, ...] = ()

    def get(self, name: str) -> Pool | None:
        """The pool of that name (its own, or Cloudwise's label ``name``), or None."""
        for pool in self.pools:
            if pool.name == name:
                return pool
        return next((pool for pool in self.pools if pool.labels.get("name") == name), None)

    @property
    def names(self) -> list[str]:
        """The names of the pools, sorted."""
        return sorted(pool.name for pool in self.pools)
