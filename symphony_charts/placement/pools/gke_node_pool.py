"""What an input says of one GKE node pool becomes the `Pool` that follows from it by the model of a node.

Readers fill in `PoolFacts` from their own spelling; all arithmetic, labels and taints are added here, once.
Labels and taints follow GoogleCloudPlatform/cluster-autoscaler, pkg/cloudprovider/gke/labels/system_labels.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from symphony_charts.formats.field_reader import Fields
from symphony_charts.formats.quantity import GIB, MIB
from symphony_charts.placement.machines.allocatable import NodeSpec, allocatable
from symphony_charts.placement.machines.catalog import Catalog, Machine, slice_hosts
from symphony_charts.placement.machines.system_pods import system_profile
from symphony_charts.placement.pools.impossible import device_faults, parts_of
from symphony_charts.placement.pools.pool import (
    GKE_POOL_LABEL,
    Accuracy,
    Amounts,
    Doubt,
    Pool,
    Provisioning,
    Taint,
    Tpu,
    Weight,
)

__all__ = [
    "PoolFacts",
    "doubt",
    "driver_doubts",
    "huge_pages",
    "make_pool",
    "provisioning_of",
    "read_taints",
    "reservation_of",
]

_EFFECTS = {
    "no_schedule": "NoSchedule",
    "prefer_no_schedule": "PreferNoSchedule",
    "no_execute": "NoExecute",
    "noschedule": "NoSchedule",
    "prefernoschedule": "PreferNoSchedule",
    "noexecute": "NoExecute",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolFacts:
    """One node pool as an input tells it; node counts are those of the whole pool."""

    name: str
    source: str
    machine_type: str
    version: str = ""
    image: str = ""
    disk_gib: int = 100
    ephemeral_ssds: int | None = None
    labels: dict[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    gpu_type: str = ""
    gpu_count: int = 0
    gpu_partition: str = ""
    gpu_sharing: str = ""
    gpu_clients: int = 1
    provisioning: Provisioning = "standard"
    zones: tuple[str, ...] = ()
    min_nodes: int = 0
    max_nodes: int = 0
    max_pods: int = 110
    placement: str = ""
    tpu_topology: str = ""
    reservation: str = ""
    queued: bool = False
    streaming: bool = False
    one_thread: bool = False
    confidential: bool = False
    calico: bool = False
    gcs_fuse: bool = False
    raw_ssds: int = 0
    cache_ssds: int = 0
    extra_ssds: int = 0
    hugepages: Amounts = field(default_factory=dict)
    sandbox: str = ""
    gpu_driver: str = ""
    doubts: tuple[Doubt, ...] = ()
    reservation_nodes: Mapping[str, int] = field(default_factory=dict)
    reserved_cpu: int | None = None
    reserved_memory_mib: int | None = None
    accuracy: Accuracy = "model"
    notes: tuple[str, ...] = ()


def doubt(item: Fields, text: str, weight: Weight = "PACKABLE", *, may_grow: bool = False, label: str = "") -> Doubt:
    """Return a doubt about the pool, with the place in the file that raises it."""
    where = item.faults.position(item.path)
    return Doubt(text=f"{text} ({where})", weight=weight, may_grow=may_grow, label=label)


def driver_doubts(addons: Fields, names: Mapping[str, str]) -> Iterator[Doubt]:
    """A doubt for each add-on (key -> whose driver) that runs on every node and asks for nobody knows how much."""
    for key, whose in names.items():
        if addons.block(key).flag("enabled"):
            text = f"the driver of {whose} on each node asks for what is published nowhere; --system says it"
            yield replace(doubt(addons, text), of_system=True)


def huge_pages(config: Fields, small: str, large: str) -> Amounts:
    """Huge pages of a node in bytes, from the number of those of 2 MiB and of 1 GiB."""
    amounts = {
        "hugepages-2Mi": (config.number(small) or 0) * 2 * MIB,
        "hugepages-1Gi": (config.number(large) or 0) * GIB,
    }
    return {name: amount for name, amount in amounts.items() if amount}


def read_taints(pool: Fields, *keys: str) -> tuple[Taint, ...]:
    """Taints in Terraform's, gcloud's or Kubernetes' spelling; each of `keys` may hold some."""
    taints: dict[Taint, None] = {}
    for item in (item for key in keys for item in pool.blocks(key)):
        effect = item.text("effect", required=True)
        kubernetes_effect = _EFFECTS.get(effect.lower())
        if effect and kubernetes_effect is None:
            item.fault(f'unknown taint effect "{effect}"', "effect", "NO_SCHEDULE, PREFER_NO_SCHEDULE or NO_EXECUTE")
        key = item.text("key", required=True)
        if kubernetes_effect and key:
            taints[Taint(key=key, value=item.text("value"), effect=kubernetes_effect)] = None  # type: ignore[arg-type]  # values of _EFFECTS
    return tuple(taints)


def make_pool(facts: PoolFacts, catalog: Catalog, machine_field: Fields) -> Pool | None:
    """The pool that `facts` describe, or None with a fault at `machine_field` when its machine type is unknown."""
    machine = catalog.get(facts.machine_type)
    if machine is None:
        near = catalog.nearest(facts.machine_type)
        hint = f'did you mean "{near}"? ' if near else ""
        machine_field.fault(
            f'unknown machine type "{facts.machine_type}"',
            "",
            f"{hint}`symph catalog refresh FILE` adds what gcloud lists",
        )
        return None
    gpu_type, gpus = facts.gpu_type or machine.gpu, facts.gpu_count or machine.gpus
    for what, hint in device_faults(machine, facts.gpu_type, facts.gpu_count, facts.gpu_partition):
        machine_field.fault(what, "", hint)
    tpu = _tpu(facts, machine, machine_field)
    node = _node_spec(facts, machine)
    offer = allocatable(node) | _devices(facts, machine, gpus) | facts.hugepages
    offer["memory"] = max(0, offer["memory"] - sum(facts.hugepages.values()))
    accuracy = facts.accuracy
    if accuracy == "model" and node.reserved_cpu is not None:
        accuracy = "effective"
    return Pool(
        name=facts.name,
        source=facts.source,
        machine_type=machine.name,
        vcpu=machine.vcpu,
        memory_mib=machine.memory_mib,
        arch=machine.arch,
        allocatable=offer,
        accuracy=accuracy,
        system=system_profile(gpu=gpus > 0, tpu=machine.chips > 0, calico=facts.calico, gcs_fuse=facts.gcs_fuse),
        labels=_labels(facts, machine, gpu_type, gpus, tpu),
        taints=_taints(facts, machine, gpus),
        zones=facts.zones,
        min_nodes=facts.min_nodes,
        max_nodes=min(facts.max_nodes, facts.reservation_nodes.get(facts.reservation, facts.max_nodes)),
        provisioning=facts.provisioning,
        gpu_type=gpu_type if gpus else "",
        gpus=offer.get("nvidia.com/gpu", 0),
        attached_gpus=gpus if not machine.gpus else 0,
        tpu=tpu,
        placement=facts.placement,
        reservation=facts.reservation,
        queued=facts.queued,
        selector=(GKE_POOL_LABEL, facts.name),
        notes=(*facts.notes, *_newer_reservation(node)),
        doubts=(*facts.doubts, *_own_doubts(facts)),
        local_ssds=_priced_ssds(facts, machine),
    )


def _own_doubts(facts: PoolFacts) -> Iterator[Doubt]:
    """What the model knows that it does not know."""
    if _is_windows(facts):
        yield Doubt(text="nodes of Windows keep back more memory and disk than is known here")
    if facts.gpu_driver == "INSTALLATION_DISABLED" and facts.gpu_count:
        yield Doubt(text="GPUs show up only after a driver was installed by hand", weight="PACKABLE")
    if facts.reservation and facts.reservation not in facts.reservation_nodes:
        yield Doubt(text=f"how many nodes reservation {facts.reservation} holds is not said here", weight="PACKABLE")


def _is_windows(facts: PoolFacts) -> bool:
    return facts.image.lower().startswith("windows")


def _priced_ssds(facts: PoolFacts, machine: Machine) -> int:
    return machine.local_ssds or (facts.ephemeral_ssds or 0) + facts.raw_ssds + facts.cache_ssds + facts.extra_ssds


def _newer_reservation(node: NodeSpec) -> tuple[str, ...]:
    """What nodes of 1.37 and later may have more, once Google switches their new reservation on."""
    match = re.match(r"v?1\.(\d+)", node.version)
    if match is None or int(match[1]) < 37 or node.reserved_memory_mib is not None:
        return ()
    newer, now = allocatable(replace(node, reservation="v2")), allocatable(node)
    more = f"{newer['cpu'] - now['cpu']}m CPU and {(newer['memory'] - now['memory']) >> 20}Mi"
    return (f"GKE {node.version} may leave {more} more a node than is counted on here",)


def _node_spec(facts: PoolFacts, machine: Machine) -> NodeSpec:
    # Disks that come with the machine serve as ephemeral storage, unless they are said to serve otherwise.
    free = max(0, machine.local_ssds - facts.cache_ssds) if not facts.raw_ssds else 0
    ssds = free if facts.ephemeral_ssds is None else facts.ephemeral_ssds
    return NodeSpec(
        vcpu=machine.vcpu,
        memory_mib=machine.memory_mib,
        machine_type=machine.name,
        arch=machine.arch,
        distribution="ubuntu" if facts.image.lower().startswith("ubuntu") else "cos",
        version=facts.version,
        confidential=facts.confidential,
        max_pods=facts.max_pods,
        boot_disk_gib=facts.disk_gib,
        local_ssds=ssds,
        local_ssd_gib=machine.local_ssd_gib,
        image_streaming=facts.streaming,
        one_thread_per_core=facts.one_thread,
        reserved_cpu=facts.reserved_cpu,
        reserved_memory_mib=facts.reserved_memory_mib,
    )


def _distribution(facts: PoolFacts) -> str:
    image = facts.image.lower()
    return next((name for name in ("ubuntu", "windows") if image.startswith(name)), "cos")


def _devices(facts: PoolFacts, machine: Machine, gpus: int) -> Amounts:
    """GPUs after partition and sharing, TPU chips; with Dynamic Resource Allocation nodes list no GPU at all."""
    devices: Amounts = {}
    if gpus and facts.labels.get("cloud.google.com/gke-nvidia-gpu-dra-driver") != "true":
        devices["nvidia.com/gpu"] = gpus * max(1, parts_of(facts.gpu_partition)) * max(1, facts.gpu_clients)
    if machine.chips:
        devices["google.com/tpu"] = machine.chips
    return devices


def _tpu(facts: PoolFacts, machine: Machine, machine_field: Fields) -> Tpu | None:
    if not machine.chips:
        return None
    topology = facts.tpu_topology or machine.topology
    try:
        hosts = slice_hosts(topology, machine.chips)
    except ValueError as error:
        machine_field.fault(str(error))
        hosts = 1
    return Tpu(type=machine.tpu, topology=topology, chips=machine.chips, hosts=hosts)


def _labels(facts: PoolFacts, machine: Machine, gpu_type: str, gpus: int, tpu: Tpu | None) -> dict[str, str]:
    prefix = "cloud.google.com/"
    labels = {
        GKE_POOL_LABEL: facts.name,
        f"{prefix}machine-family": machine.family,
        f"{prefix}gke-os-distribution": _distribution(facts),
        f"{prefix}gke-max-pods-per-node": str(facts.max_pods),
        f"{prefix}gke-provisioning": facts.provisioning,
        "node.kubernetes.io/instance-type": machine.name,
        "kubernetes.io/arch": machine.arch,
        "kubernetes.io/os": "windows" if _is_windows(facts) else "linux",
    }
    if facts.provisioning != "standard":
        labels[f"{prefix}gke-{facts.provisioning}"] = "true"
    if len(facts.zones) == 1 and facts.zones[0].count("-") >= 2:
        labels["topology.kubernetes.io/zone"] = facts.zones[0]
    if facts.zones:
        zone = facts.zones[0]
        labels["topology.kubernetes.io/region"] = zone.rsplit("-", 1)[0] if zone.count("-") >= 2 else zone
    if gpus:
        labels |= {f"{prefix}gke-accelerator": gpu_type, f"{prefix}gke-gpu": "true"}
    if facts.gpu_partition:
        labels[f"{prefix}gke-gpu-partition-size"] = facts.gpu_partition
    if facts.gpu_sharing:
        labels[f"{prefix}gke-gpu-sharing-strategy"] = facts.gpu_sharing.lower().replace("_", "-")
        labels[f"{prefix}gke-max-shared-clients-per-gpu"] = str(facts.gpu_clients)
    if tpu:
        labels |= {f"{prefix}gke-tpu-accelerator": tpu.type, f"{prefix}gke-tpu-topology": tpu.topology}
    if facts.sandbox:
        labels["sandbox.gke.io/runtime"] = facts.sandbox
    if facts.gpu_driver:
        labels[f"{prefix}gke-gpu-driver-version"] = facts.gpu_driver.removeprefix("INSTALLATION_").lower()
    if facts.reservation:
        labels[f"{prefix}reservation-name"] = facts.reservation
    if facts.placement and facts.placement != "compact":  # what readers put for a policy without a name
        labels[f"{prefix}placement-policy-name"] = facts.placement
    return labels | facts.labels


def _taints(facts: PoolFacts, machine: Machine, gpus: int) -> tuple[Taint, ...]:
    own = [
        (bool(facts.sandbox), Taint(key="sandbox.gke.io/runtime", value=facts.sandbox)),
        (_is_windows(facts), Taint(key="node.kubernetes.io/os", value="windows")),
        (gpus > 0, Taint(key="nvidia.com/gpu", value="present")),
        (machine.chips > 0, Taint(key="google.com/tpu", value="present")),
        (machine.arch == "arm64", Taint(key="kubernetes.io/arch", value="arm64")),
        (facts.queued, Taint(key="cloud.google.com/gke-queued", value="true")),
    ]
    keys = {taint.key for taint in facts.taints}
    return facts.taints + tuple(taint for wanted, taint in own if wanted and taint.key not in keys)


def provisioning_of(config: Fields, flex_start: str) -> Provisioning:
    """How the nodes of a node config are provisioned; `flex_start` is the format's name of that flag."""
    if config.flag("spot"):
        return "spot"
    if config.flag(flex_start):
        return "flex-start"
    return "preemptible" if config.flag("preemptible") else "standard"


def reservation_of(affinity: Fields, consume_type: str) -> str:
    """Return the reservation that a node config names, if any; `consume_type` is the format's name of that field."""
    is_specific = affinity.text(consume_type) == "SPECIFIC_RESERVATION"
    return next(iter(affinity.texts("values")), "") if is_specific else ""
