"""Node pools and their nodes, independent of the input format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os.path import normpath
from pathlib import Path
from typing import Literal, NamedTuple

from symphony_charts.placement.allocatable import Amounts, memory_margin
from symphony_charts.placement.catalog import Catalog, default_catalog

# Advice for clusters whose pools no reader can read.
ELSEWHERE = "give `kubectl get nodes -o json`, or a pools.yaml with `allocatable`"
GKE_POOL_LABEL = "cloud.google.com/gke-nodepool"
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
# Domains of the labels that Kubernetes, GKE and their add-ons put on nodes; subdomains included.
_SYSTEM_DOMAINS = ("cloud.google.com", "gke.io", "kubernetes.io", "k8s.io")
# Labels of these domains that every reader reads or computes: if a pool lacks one, its nodes lack it.
_MODELLED = {
    "kubernetes.io": {"arch", "hostname", "os"},
    "node.kubernetes.io": {"instance-type"},
    "sandbox.gke.io": {"runtime"},
    "cloud.google.com": {
        "compute-class", "gke-accelerator", "gke-flex-start", "gke-gpu", "gke-gpu-driver-version",
        "gke-gpu-partition-size", "gke-gpu-sharing-strategy", "gke-max-pods-per-node",
        "gke-max-shared-clients-per-gpu", "gke-nodepool", "gke-os-distribution", "gke-placement-group",
        "gke-preemptible", "gke-provisioning", "gke-queued", "gke-spot", "gke-tpu-accelerator", "gke-tpu-topology",
        "machine-family", "placement-policy-name", "reservation-name",
    },
}  # fmt: skip

Accuracy = Literal["live", "stated", "effective", "model"]
Provisioning = Literal["standard", "spot", "preemptible", "flex-start"]
Weight = Literal["UNKNOWN", "PACKABLE", "PROVEN"]


def is_zone(location: str) -> bool:
    """Return True if `location` is a zone such as us-central1-a, False if it is a region."""
    return location.count("-") >= 2


class HostPort(NamedTuple):
    """A port of the node; `address` is one of the node's addresses, empty for all of them."""

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


@dataclass(frozen=True, slots=True)
class Requirement:
    """One expression of a node affinity term; `is_field` for matchFields, which supports only ``metadata.name``."""

    key: str
    operator: str
    values: tuple[str, ...] = ()
    is_field: bool = False

    def holds(self, labels: Mapping[str, str], node: str) -> bool:
        value = node if self.is_field else labels.get(self.key)
        if self.operator in ("In", "NotIn"):
            return (value in self.values) == (self.operator == "In")
        if self.operator in ("Exists", "DoesNotExist"):
            return (value is not None) == (self.operator == "Exists")
        try:
            have, limit = int(value or ""), int(self.values[0])
        except (ValueError, IndexError):
            return False
        return have > limit if self.operator == "Gt" else have < limit


@dataclass(frozen=True, slots=True, kw_only=True)
class AntiAffinity:
    """A required anti-affinity term: pods that match `selector` share no domain of the node label `key` with its pod.

    `is_scoped`: the term sets namespaces, or labels of its own pod. Other terms apply only to the namespace of its pod.
    """

    key: str
    selector: tuple[Requirement, ...]
    is_scoped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PresentPod:
    """A pod on a live node."""

    name: str
    namespace: str
    labels: Mapping[str, str]
    anti_affinity: tuple[AntiAffinity, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncertainty:
    """A fact about a pool that is missing in the file or in the model; `weight` is then the best possible verdict.

    `may_grow`: there may be more nodes than counted, or they may accept more pods, so that nothing can be excluded.
    `of_system`: it concerns the requests of system pods, so a user who sets them resolves it.
    """

    text: str
    weight: Weight = "UNKNOWN"
    may_grow: bool = False
    of_system: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Tpu:
    """A pool's TPU slice: `hosts` VMs of `chips` each in `topology`; a slice of several hosts is one unit."""

    type: str
    topology: str
    chips: int
    hosts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One live node with its `pods`; `free` is the rest, `ports` are the used host ports."""

    name: str
    allocatable: Mapping[str, int]
    free: Mapping[str, int]
    labels: Mapping[str, str]
    taints: tuple[Taint, ...] = ()
    ports: frozenset[HostPort] = frozenset()
    pods: tuple[PresentPod, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """One node pool: the resources of a node, the number of nodes, and the pods that may run there.

    `allocatable` is per node, `system` are the requests of its system pods; `usable` is the rest for experiments.
    `source` is the place in the file (``cluster.tf.json:12, resource.google_container_node_pool.std8``). `min_nodes`
    and `max_nodes` count the whole pool over all `zones`. `accuracy` is the origin of `allocatable`: read from live
    nodes, stated by the user, or computed, with GKE's own effective reservation or by the model. `nodes` are the
    live nodes, if known, and part of `max_nodes`; `is_load_known` if their pods are known.
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
    uncertainties: tuple[Uncertainty, ...] = ()
    local_ssds: int = 0
    is_load_known: bool = False

    @property
    def usable(self) -> Amounts:
        """Resources that one node has for experiments: allocatable minus system pods, minus the margin."""
        left = {name: amount - self.system.get(name, 0) for name, amount in self.allocatable.items()}
        left["memory"] = left.get("memory", 0) - memory_margin(self.allocatable.get("memory", 0), self.accuracy)
        return {name: max(0, amount) for name, amount in left.items()}

    def leaves_open(self, label: str) -> bool:
        """Return True if nodes of the pool may or may not have this label, which the pool does not show.

        Live nodes show all their labels. Only self-managed clusters have role labels, so pools never leave them open.
        """
        domain, _, name = label.rpartition("/")
        if label in self.labels or self.accuracy == "live" or domain == "node-role.kubernetes.io":
            return False
        if domain == "topology.kubernetes.io" and name in ("zone", "region"):
            return not self.zones
        is_of_system = domain in _SYSTEM_DOMAINS or domain.endswith(tuple(f".{of}" for of in _SYSTEM_DOMAINS))
        return is_of_system and name not in _MODELLED.get(domain, ())

    @property
    def region(self) -> str:
        """The region of the pool's zones or labels, or an empty string."""
        label = self.labels.get("topology.kubernetes.io/region", "")
        if label or not self.zones:
            return label
        return self.zones[0].rsplit("-", 1)[0] if is_zone(self.zones[0]) else self.zones[0]

    @property
    def is_spot(self) -> bool:
        return self.provisioning in ("spot", "preemptible")

    @property
    def is_multi_host(self) -> bool:
        """True if the pool is a TPU slice of several hosts, which is filled as a whole or stays empty."""
        return self.tpu is not None and self.tpu.hosts > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Pools:
    """All node pools that were read, in the order of the file.

    `autoscaled` lists reasons why there may be more pools than the files show. `workloads` are objects that run
    beside the experiment, None if the user gave none. `pending` are the pods of a live cluster that wait for a node.
    `limits` are the namespaces and names of quotas and limit ranges, which no verdict considers.
    """

    pools: tuple[Pool, ...] = ()
    autoscaled: tuple[str, ...] = ()
    workloads: tuple[Mapping[str, object], ...] | None = None
    pending: tuple[Mapping[str, object], ...] = ()
    limits: tuple[tuple[str, str], ...] = ()
    source: str = ""
    catalog: Catalog = field(default_factory=default_catalog)

    def get(self, name: str) -> Pool | None:
        """Return the pool of that name (its own, or Cloudwise's label ``name``), or None."""
        fitting = [pool for pool in self.pools if name in (pool.name, pool.labels.get("name"))]
        return min(fitting, key=lambda pool: pool.name != name, default=None)

    @property
    def needs_labels(self) -> bool:
        """True if the labels and the namespace of pods matter, as anti-affinity or a quota may apply to them."""
        return bool(self.pending or self.limits) or any(
            pod.anti_affinity for pool in self.pools for node in pool.nodes for pod in node.pods
        )

    @property
    def names(self) -> list[str]:
        return sorted(pool.name for pool in self.pools)


def pools_of_spec(
    spec: Path,
    named: str | None,
    given: Sequence[str] = (),
    *,
    variables: Mapping[str, object] | None = None,
    system: str | None = None,
) -> Pools | None:
    """Return the pools for planning an experiment: the `given` files, else `placement.pools` of the spec.

    `named` is relative to the spec file. None if neither is set.
    """
    if not given and named is None:
        return None
    # Importing the readers takes 10 ms, which experiments without pools do not need.
    from symphony_charts.placement.pools.readers import apply_system_option, read_pool_files

    # normpath, not resolve: errors and plans show the user's path, not a link's target.
    files = given or [normpath(spec.parent / Path(named or "").expanduser())]
    return apply_system_option(read_pool_files(files, variables=variables), system)
