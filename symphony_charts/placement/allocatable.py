"""The model of a GKE node: allocatable resources, and the requests of system pods.

Sources: GoogleCloudPlatform/cluster-autoscaler (GKE's own autoscaler), pkg/cloudprovider/gke/reserved.go for the
reservations and config/os-reserved.yaml for what kernel and system take; checked against real nodes of 2017-2026.
Google's documentation writes the memory tiers in GiB; the nodes show tiers at 4000, 8000, 16000 and 128000 MiB.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Literal

from symphony_charts.formats.quantity import GIB, MIB

# Amounts of one node or pod: cpu in millicores, memory and ephemeral-storage in bytes, pods and devices as counts.
Amounts = dict[str, int]

EVICTION_MEMORY = 100 * MIB
# The kubelet keeps the 10 % of --eviction-hard as a float32, so the result is a few bytes below 0.1.
EVICTION_DISK = 0.10000000149011612
SHARED_CORE = {"e2-micro", "e2-small", "e2-medium"}
DEFAULT_MAX_PODS = 110

_CPU_TIERS = ((0, 0.06), (1000, 0.01), (2000, 0.005), (4000, 0.0025))
_MEMORY_TIERS = ((0, 0.25), (4000, 0.20), (8000, 0.10), (16000, 0.06), (128000, 0.02))
_STREAMING_FACTOR = 0.04
# Overhead of RAID and file system on N local SSDs of 375 GiB, in KiB, measured by GKE; a count between two rows takes
# the next larger one.
_SSD_OVERHEAD_KIB = {1: 7289472, 2: 13725224, 4: 26332924, 8: 51556096, 16: 52837800, 24: 78686620}


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSpec:
    """Size and settings of a planned GKE node. Disk sizes in GiB; `reserved_*` are GKE's effective values."""

    vcpu: int
    memory_mib: int
    machine_type: str = ""
    arch: str = "amd64"
    distribution: Literal["cos", "ubuntu"] = "cos"
    max_pods: int = DEFAULT_MAX_PODS
    boot_disk_gib: int = 100
    local_ssds: int = 0
    local_ssd_gib: int = 375
    image_streaming: bool = False
    one_thread_per_core: bool = False
    reserved_cpu: int | None = None
    reserved_memory_mib: int | None = None

    @property
    def cpu_millis(self) -> int:
        """Capacity in millicores; one thread per core halves the vCPUs, except on t2a, which has no second thread."""
        halved = self.one_thread_per_core and not self.machine_type.startswith("t2a-")
        return self.vcpu * (500 if halved else 1000)


def kube_reserved_cpu(node: NodeSpec) -> int:
    """Return the millicores that GKE reserves for kubelet and runtime; shared-core e2 machines reserve all but 940."""
    burst = 0
    millis = node.cpu_millis
    if node.machine_type in SHARED_CORE:
        burst, millis = millis - 1000, 1000
    return _tiers(millis, _CPU_TIERS) + burst + (400 if node.max_pods > DEFAULT_MAX_PODS else 0)


def kube_reserved_memory(node: NodeSpec) -> int:
    """Return the MiB that GKE reserves for kubelet, runtime and image streaming.

    From 1.37 on Google may enable a newer rule by itself. It never reserves more, so this one is safe for proofs.
    """
    if node.memory_mib <= 1000:
        return 255
    streaming = _tiers(node.memory_mib, _MEMORY_TIERS, _STREAMING_FACTOR) if node.image_streaming else 0
    return _tiers(node.memory_mib, _MEMORY_TIERS) + streaming


def kube_reserved_disk(node: NodeSpec) -> int:
    """Return the GiB of ephemeral storage that GKE reserves."""
    if node.local_ssds:
        return {1: 50, 2: 75}.get(node.local_ssds, 100)
    half, basic = node.boot_disk_gib // 2, 6 + int(0.35 * node.boot_disk_gib)
    return half if basic > half else min(basic, 100)


def capacity(node: NodeSpec) -> Amounts:
    """Return the node's reported capacity: millicores, bytes of memory and ephemeral storage, pod slots."""
    physical = node.memory_mib * MIB
    return {
        "cpu": node.cpu_millis,
        "memory": physical - _reserved(_KERNEL, node, physical),
        "ephemeral-storage": _disk_capacity(node),
        "pods": node.max_pods,
    }


def allocatable(node: NodeSpec) -> Amounts:
    """Return the total that pods may request: millicores, bytes of memory and ephemeral storage, pod slots."""
    whole = capacity(node)
    cpu = kube_reserved_cpu(node) if node.reserved_cpu is None else node.reserved_cpu
    memory = kube_reserved_memory(node) if node.reserved_memory_mib is None else node.reserved_memory_mib
    disk = whole["ephemeral-storage"]
    return {
        "cpu": whole["cpu"] - cpu,
        "memory": whole["memory"] - memory * MIB - EVICTION_MEMORY,
        "ephemeral-storage": max(0, disk - kube_reserved_disk(node) * GIB - int(disk * EVICTION_DISK)),
        "pods": node.max_pods,
    }


def _disk_capacity(node: NodeSpec) -> int:
    if not node.local_ssds:
        size = node.boot_disk_gib * GIB
        return max(0, size - _reserved(_DISK, node, size))
    row = next((n for n in _SSD_OVERHEAD_KIB if n >= node.local_ssds), 24)
    return max(0, node.local_ssds * node.local_ssd_gib * GIB - _SSD_OVERHEAD_KIB[row] * 1024)


def _tiers(amount: int, tiers: tuple[tuple[int, float], ...], factor: float = 1.0) -> int:
    """Return the sum over tiers of (part of `amount` in the tier) x (rate of the tier), truncated once at the end."""
    reserved = 0.0
    for index, (start, rate) in enumerate(tiers):
        if amount > start:
            end = tiers[index + 1][0] if index + 1 < len(tiers) else amount
            reserved += (min(amount, end) - start) * (rate * factor)
    return int(reserved)


Points = tuple[tuple[int, int], ...]

_MIB = (1024, 1740, 2048, 3072, 3840, 4096, 8192, 16384, 32768, 65536, 131072, 262144, 1968128)


def _row(sizes_mib: tuple[int, ...], *reserved: int) -> Points:
    return tuple((size << 20, amount) for size, amount in zip(sizes_mib, reserved, strict=True))


# Physical bytes -> reserved bytes. Keys: distribution, architecture. Nodes of COS up to 1.29 and of
# Ubuntu up to 1.32 differ by less than 8 MiB, which is below `memory_margin`.
_KERNEL: dict[tuple[str, str], Points] = {
    ("cos", "amd64"): _row(
        _MIB, 63029248, 76906496, 81379328, 101027840, 181510144, 185987072, 259383296, 406728704, 701440000,
        1290866688, 2369056768, 4427124736, 32385806336,
    ),
    ("cos", "arm64"): _row((4096, 16384, 65536, 196608), 186417152, 432238592, 1415553024, 3939426304),
    ("ubuntu", "amd64"): _row(
        _MIB, 68788224, 82583552, 87138304, 106696704, 187183104, 191737856, 265138176, 412651520, 707694592,
        1297764352, 2377248768, 4438106112, 32398118912,
    ),
}  # fmt: skip
_DISK: dict[tuple[str, str], Points] = {
    ("cos", "amd64"): (
        (10 << 30, 4642525184), (15 << 30, 4731506688), (100 << 30, 6170308608), (1000 << 30, 21279993856),
        (10000 << 30, 172290314240),
    ),
    ("cos", "arm64"): (
        (10 << 30, 4709634048), (15 << 30, 4798615552), (100 << 30, 6237417472), (1000 << 30, 21347102720),
        (10000 << 30, 172357423104),
    ),
    ("ubuntu", "amd64"): (
        (10 << 30, 1453973504), (15 << 30, 1623126016), (100 << 30, 4486086656), (1000 << 30, 34748268544),
        (10000 << 30, 337341259776),
    ),
}  # fmt: skip


def _reserved(table: dict[tuple[str, str], Points], node: NodeSpec, size: int) -> int:
    """Return the bytes of `size` that the system takes; a row that `table` lacks is COS's.

    Interpolates linearly from (0, 0) through the points of the row and beyond, truncated like the source.
    """
    points = table.get((node.distribution, node.arch)) or table.get(("cos", node.arch)) or table["cos", "amd64"]
    index = min(bisect_left(points, (size,)), len(points) - 1)
    low, high = ((0, 0), *points)[index : index + 2]
    if size == high[0]:
        return high[1]
    return int(low[1] + (high[1] - low[1]) / (high[0] - low[0]) * (size - low[0]))


# Source: requests seen on a GKE 1.36.3 node (2026-10): fluentbit-gke 105m/230Mi, gke-metadata-server 100m/100Mi,
# gke-metrics-agent 21m/145Mi, ip-masq-agent 10m/16Mi, kube-proxy 100m, netd 8m/65Mi, node-local-dns 30m/50Mi,
# pdcsi-node 10m/20Mi: 384m, 626Mi, 8 pods; from 1.27 on the collector of Managed Prometheus may join them with 5m/36M
# (GoogleCloudPlatform/prometheus-engine, manifests). The default rounds that up; live DaemonSets and pods replace it.
# The driver of Cloud Storage requests at most 20m/160Mi (GoogleCloudPlatform/gcs-fuse-csi-driver, deploy); the requests
# of the Filestore, Lustre and Parallelstore drivers on GKE are not published.


@dataclass(frozen=True, slots=True)
class ClusterPods:
    """A Deployment of kube-system: requests of one pod in millicores and MiB, and the number of pods.

    There are at least `least` pods, and one per `for_nodes` nodes or `for_cores` cores of the cluster.
    """

    name: str
    cpu: int
    memory_mib: int
    least: int = 1
    for_nodes: int = 0
    for_cores: int = 0

    def count(self, nodes: int, cores: int) -> int:
        by_nodes = -(-nodes // self.for_nodes) if self.for_nodes else 0
        by_cores = -(-cores // self.for_cores) if self.for_cores else 0
        return max(self.least, by_nodes, by_cores)


# Pods that GKE runs once per cluster, on nodes without taints. Source: the manifests of kubernetes/kubernetes,
# cluster/addons (dns, dns-horizontal-autoscaler, metrics-server, cluster-loadbalancing), which GKE deploys; its two
# proxies to the control plane as seen on GKE.
CLUSTER_PODS = (
    ClusterPods("kube-dns", 260, 110, least=2, for_nodes=16, for_cores=256),
    ClusterPods("kube-dns-autoscaler", 20, 10),
    ClusterPods("konnectivity-agent", 10, 30, least=3, for_nodes=200),
    ClusterPods("konnectivity-agent-autoscaler", 10, 10),
    ClusterPods("metrics-server", 48, 105),
    ClusterPods("l7-default-backend", 10, 20),
)

_BASE = {"cpu": 400, "memory": 700 * MIB, "pods": 10}
_GPU_PLUGIN = {"cpu": 150, "memory": 80 * MIB, "pods": 1}
_TPU_PLUGIN = {"cpu": 110, "memory": 0, "pods": 1}
_CALICO = {"cpu": 500, "memory": 0, "pods": 1}
_GCS_FUSE = {"cpu": 20, "memory": 160 * MIB, "pods": 1}


def system_profile(
    *, gpu: bool = False, tpu: bool = False, calico: bool = False, gcs_fuse: bool = False
) -> dict[str, int]:
    """Return the assumed requests of system pods on one GKE node: millicores, bytes and pod slots.

    `calico`: network policy without Dataplane V2. `gcs_fuse`: the driver that mounts Cloud Storage.
    """
    added = ((gpu, _GPU_PLUGIN), (tpu, _TPU_PLUGIN), (calico, _CALICO), (gcs_fuse, _GCS_FUSE))
    parts = [_BASE, *(part for wanted, part in added if wanted)]
    return {name: sum(part[name] for part in parts) for name in _BASE}


def memory_margin(memory: int, accuracy: str) -> int:
    """Return the bytes kept back because a model may be wrong: 0.1 %, at least 16 MiB; 0 if live or stated."""
    return 0 if accuracy in ("live", "stated") else max(16 * MIB, memory // 1000)
