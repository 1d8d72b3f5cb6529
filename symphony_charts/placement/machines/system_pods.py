"""GKE's own pods take a share of every node before the first pod of an experiment.

Source: requests seen on a GKE 1.36.3 node (2026-10): fluentbit-gke 105m/230Mi, gke-metadata-server 100m/100Mi,
gke-metrics-agent 21m/145Mi, ip-masq-agent 10m/16Mi, kube-proxy 100m, netd 8m/65Mi, node-local-dns 30m/50Mi,
pdcsi-node 10m/20Mi: 384m, 626Mi, 8 pods; from 1.27 on the collector of Managed Prometheus may join them with 5m/36M
(GoogleCloudPlatform/prometheus-engine, manifests). The default rounds that up; live DaemonSets and pods replace it.
The driver of Cloud Storage asks for no more than 20m/160Mi (GoogleCloudPlatform/gcs-fuse-csi-driver, deploy); what
those of Filestore, Lustre and Parallelstore ask for on GKE is published nowhere.
"""

from __future__ import annotations

from dataclasses import dataclass

from symphony_charts.formats.quantity import MIB

__all__ = ["CLUSTER_PODS", "ClusterPods", "memory_margin", "system_profile"]


@dataclass(frozen=True, slots=True)
class ClusterPods:
    """A Deployment of kube-system: what one pod requests in millicores and MiB, and how many there are.

    There are `least` of them, and one for so many nodes (`for_nodes`) or cores (`for_cores`) of the cluster.
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


# What GKE runs once for a cluster, on nodes without taints. Source: the manifests of kubernetes/kubernetes,
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
    """Millicores, bytes and pod slots that system pods are taken to request on one GKE node.

    `calico`: network policy without Dataplane V2. `gcs_fuse`: the driver that mounts Cloud Storage.
    """
    total = dict(_BASE)
    for wanted, part in ((gpu, _GPU_PLUGIN), (tpu, _TPU_PLUGIN), (calico, _CALICO), (gcs_fuse, _GCS_FUSE)):
        if wanted:
            total = {name: amount + part[name] for name, amount in total.items()}
    return total


def memory_margin(memory: int, accuracy: str) -> int:
    """Bytes kept back because the model is not the node: 0.1 %, at least 16 MiB; 0 for what a node said itself."""
    return 0 if accuracy in ("live", "stated") else max(16 * MIB, memory // 1000)
