"""Make the `Pool` of a GKE node pool's configuration: resources, labels and taints of a node.

Labels and taints follow GoogleCloudPlatform/cluster-autoscaler, pkg/cloudprovider/gke/labels/system_labels.go. GPUs of
n1 machines follow Google's table (count -> most vCPUs); all other GPUs are part of their machine types.
"""

from __future__ import annotations

from collections.abc import Iterator

from symphony_charts.formats.names import nearest
from symphony_charts.placement.allocatable import Amounts, NodeSpec, allocatable, system_profile
from symphony_charts.placement.catalog import Catalog, Machine, gpu_matches, slice_hosts
from symphony_charts.placement.pools.node_config import NodePoolConfig
from symphony_charts.placement.pools.pool import GKE_POOL_LABEL, ZONE, Pool, Taint, Tpu, Uncertainty, is_zone


def make_pool(config: NodePoolConfig, catalog: Catalog) -> Pool | None:
    """Return the pool of `config`; None if it has no name, or, with a fault, if its machine type is unknown."""
    if not config.name:
        return None
    machine = catalog.get(config.machine_type or "e2-medium")
    if not config.machine_type:
        machine = _machine_of_labels(config) or machine
    if machine is None:
        near = nearest(config.machine_type, catalog.machines)
        hint = f'did you mean "{near}"? ' * bool(near) + "add what gcloud lists: symph catalog refresh FILE"
        config.machine_field.fault(f'unknown machine type "{config.machine_type}"', "", hint)
        return None
    gpu_type, gpus = config.gpu_type or machine.gpu, config.gpu_count or machine.gpus
    for what, hint in _device_faults(machine, config.gpu_type, config.gpu_count, config.gpu_partition):
        config.machine_field.fault(what, "", hint)
    tpu = _tpu(config, machine)
    most = min(config.max_nodes, config.cluster.reservations.get(config.reservation, config.max_nodes))
    node = _node_spec(config, machine)
    offer = allocatable(node) | _devices(config, machine, gpus) | config.hugepages
    offer["memory"] = max(0, offer["memory"] - sum(config.hugepages.values()))
    return Pool(
        name=config.name,
        source=config.source,
        machine_type=machine.name,
        vcpu=machine.vcpu,
        memory_mib=machine.memory_mib,
        arch=machine.arch,
        allocatable=offer,
        accuracy="model" if node.reserved_cpu is None else "effective",
        system=system_profile(
            gpu=gpus > 0, tpu=machine.chips > 0, calico=config.cluster.calico, gcs_fuse=config.cluster.gcs_fuse
        ),
        labels=_labels(config, machine, gpu_type, gpus, tpu),
        taints=_taints(config, machine, gpus),
        zones=config.zones,
        min_nodes=min(config.min_nodes, most),
        max_nodes=most,
        provisioning=config.provisioning,
        gpu_type=gpu_type if gpus else "",
        gpus=offer.get("nvidia.com/gpu", 0),
        attached_gpus=gpus if not machine.gpus else 0,
        tpu=tpu,
        placement=config.placement,
        reservation=config.reservation,
        queued=config.queued,
        selector=(GKE_POOL_LABEL, config.name),
        notes=(f"machine_type is not set: GKE uses {machine.name}",) * (not config.machine_type and bool(machine.name)),
        uncertainties=(*config.uncertainties, *_model_uncertainties(config, machine)),
        local_ssds=machine.local_ssds
        or (config.ephemeral_ssds or 0) + config.raw_ssds + config.cache_ssds + config.extra_ssds,
    )


def _machine_of_labels(config: NodePoolConfig) -> Machine | None:
    """Return the machine that the labels `cpu` and `memory_m` describe, as Symphony reads them; else None."""
    cpu, memory, gpus = (config.labels.get(key, "") for key in ("cpu", "memory_m", "gpu_count"))
    if not (cpu.isdecimal() and memory.isdecimal()):
        return None
    has_gpus = gpus.isdecimal() and not config.gpu_count
    return Machine(
        name="",
        family="",
        vcpu=int(cpu),
        memory_mib=int(memory),
        gpu=config.labels.get("gpu_type", "") if has_gpus else "",
        gpus=int(gpus) if has_gpus else 0,
    )


def _model_uncertainties(config: NodePoolConfig, machine: Machine) -> Iterator[Uncertainty]:
    if not machine.name:
        text = "machine_type is not set: symph reads the machine from the labels cpu, memory_m and gpu_count"
        yield Uncertainty(text=text, weight="PACKABLE", may_grow=True)
    if config.sandbox:
        yield Uncertainty(text=f"a sandbox ({config.sandbox}) reserves an unknown part of a node")
    if config.confidential:
        yield Uncertainty(text="confidential nodes reserve an unknown amount of memory")
    if _is_windows(config):
        yield Uncertainty(text="Windows nodes reserve an unknown amount of memory and disk")
    if config.gpu_driver == "INSTALLATION_DISABLED" and config.gpu_count:
        yield Uncertainty(text="its GPUs appear only after you install a driver by hand", weight="PACKABLE")
    if config.reservation and config.reservation not in config.cluster.reservations:
        yield Uncertainty(text=f"the number of nodes of reservation {config.reservation} is unknown", weight="PACKABLE")


def _is_windows(config: NodePoolConfig) -> bool:
    return config.image.lower().startswith("windows")


def _node_spec(config: NodePoolConfig, machine: Machine) -> NodeSpec:
    # Built-in local disks serve as ephemeral storage, unless configured otherwise.
    free = max(0, machine.local_ssds - config.cache_ssds) if not config.raw_ssds else 0
    ssds = free if config.ephemeral_ssds is None else config.ephemeral_ssds
    return NodeSpec(
        vcpu=machine.vcpu,
        memory_mib=machine.memory_mib,
        machine_type=machine.name,
        arch=machine.arch,
        distribution="ubuntu" if config.image.lower().startswith("ubuntu") else "cos",
        max_pods=config.max_pods,
        boot_disk_gib=config.disk_gib,
        local_ssds=ssds,
        local_ssd_gib=machine.local_ssd_gib,
        image_streaming=config.streaming,
        one_thread_per_core=config.one_thread,
        reserved_cpu=config.reserved_cpu,
        reserved_memory_mib=config.reserved_memory_mib,
    )


def _devices(config: NodePoolConfig, machine: Machine, gpus: int) -> Amounts:
    """Return GPUs after partition and sharing, and TPU chips; with Dynamic Resource Allocation nodes list no GPUs."""
    devices: Amounts = {}
    if gpus and config.labels.get("cloud.google.com/gke-nvidia-gpu-dra-driver") != "true":
        devices["nvidia.com/gpu"] = gpus * max(1, _parts_of(config.gpu_partition)) * max(1, config.gpu_clients)
    if machine.chips:
        devices["google.com/tpu"] = machine.chips
    return devices


def _tpu(config: NodePoolConfig, machine: Machine) -> Tpu | None:
    if not machine.chips:
        return None
    topology = config.tpu_topology or machine.topology
    try:
        hosts = slice_hosts(topology, machine.chips)
    except ValueError as error:
        config.machine_field.fault(str(error))
        hosts = 1
    return Tpu(type=machine.tpu, topology=topology, chips=machine.chips, hosts=hosts)


def _labels(config: NodePoolConfig, machine: Machine, gpu_type: str, gpus: int, tpu: Tpu | None) -> dict[str, str]:
    prefix, system = "cloud.google.com/", "windows" if _is_windows(config) else "linux"
    labels = {
        GKE_POOL_LABEL: config.name,
        f"{prefix}gke-os-distribution": "windows" if _is_windows(config) else _node_spec(config, machine).distribution,
        f"{prefix}gke-container-runtime": "containerd",
        f"{prefix}gke-cpu-scaling-level": str(machine.vcpu),
        f"{prefix}gke-memory-gb-scaling-level": str(machine.memory_mib // 1000),
        f"{prefix}gke-max-pods-per-node": str(config.max_pods),
        f"{prefix}gke-provisioning": config.provisioning,
        "kubernetes.io/arch": machine.arch,
        "kubernetes.io/os": system,
        "beta.kubernetes.io/arch": machine.arch,
        "beta.kubernetes.io/os": system,
    }
    if machine.name:
        labels |= {f"{prefix}machine-family": machine.family, "node.kubernetes.io/instance-type": machine.name}
        labels["beta.kubernetes.io/instance-type"] = machine.name
    if config.disk_type:
        labels[f"{prefix}gke-boot-disk"] = config.disk_type
    if config.provisioning != "standard":
        labels[f"{prefix}gke-{config.provisioning}"] = "true"
    if config.zones:
        zone = config.zones[0]
        region = zone.rsplit("-", 1)[0] if is_zone(zone) else zone
        labels |= dict.fromkeys(("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"), region)
        if is_zone(zone) and len(config.zones) == 1:
            labels |= dict.fromkeys((ZONE, "failure-domain.beta.kubernetes.io/zone", "topology.gke.io/zone"), zone)
    if gpus:
        labels |= {f"{prefix}gke-accelerator": gpu_type, f"{prefix}gke-gpu": "true"}
    if config.gpu_partition:
        labels[f"{prefix}gke-gpu-partition-size"] = config.gpu_partition
    if config.gpu_sharing:
        labels[f"{prefix}gke-gpu-sharing-strategy"] = config.gpu_sharing.lower().replace("_", "-")
        labels[f"{prefix}gke-max-shared-clients-per-gpu"] = str(config.gpu_clients)
    if tpu:
        labels |= {f"{prefix}gke-tpu-accelerator": tpu.type, f"{prefix}gke-tpu-topology": tpu.topology}
    if config.sandbox:
        labels["sandbox.gke.io/runtime"] = config.sandbox
    if config.gpu_driver:
        labels[f"{prefix}gke-gpu-driver-version"] = config.gpu_driver.removeprefix("INSTALLATION_").lower()
    if config.reservation:
        labels[f"{prefix}reservation-name"] = config.reservation
    if config.placement and config.placement != "compact":  # the readers' value for a policy without a name
        labels[f"{prefix}placement-policy-name"] = config.placement
    return labels | config.labels


def _taints(config: NodePoolConfig, machine: Machine, gpus: int) -> tuple[Taint, ...]:
    own = [
        (bool(config.sandbox), Taint(key="sandbox.gke.io/runtime", value=config.sandbox)),
        (_is_windows(config), Taint(key="node.kubernetes.io/os", value="windows")),
        (gpus > 0, Taint(key="nvidia.com/gpu", value="present")),
        (machine.chips > 0, Taint(key="google.com/tpu", value="present")),
        (machine.arch == "arm64", Taint(key="kubernetes.io/arch", value="arm64")),
        (config.queued, Taint(key="cloud.google.com/gke-queued", value="true")),
    ]
    keys = {taint.key for taint in config.taints}
    return config.taints + tuple(taint for wanted, taint in own if wanted and taint.key not in keys)


# GPUs that can be attached to n1 machines: count -> most vCPUs of the machine.
_ATTACHED = {
    "nvidia-tesla-k80": {1: 8, 2: 16, 4: 32, 8: 64},
    "nvidia-tesla-p4": {1: 24, 2: 48, 4: 96},
    "nvidia-tesla-p100": {1: 16, 2: 32, 4: 96},
    "nvidia-tesla-v100": {1: 12, 2: 24, 4: 48, 8: 96},
    "nvidia-tesla-t4": {1: 48, 2: 48, 4: 96},
}
# Devices per GPU, by the compute slices at the beginning of the partition's name.
_PARTITIONS = {"1g": 7, "2g": 3, "3g": 2, "4g": 1, "7g": 1}
_QUARTERS = {"1g.20gb", "1g.35gb", "1g.45gb"}
_PARTITIONED = ("a100", "h100", "h200", "b200", "b300", "rtx-pro")


def _parts_of(partition: str) -> int:
    """Return the number of devices of a GPU with this partition size; 1 if empty, 0 if unknown."""
    if not partition:
        return 1
    return 4 if partition in _QUARTERS else _PARTITIONS.get(partition.split(".")[0], 0)


def _device_faults(machine: Machine, gpu: str, count: int, partition: str) -> Iterator[tuple[str, str]]:
    """Yield the reasons why `count` GPUs of type `gpu` on `machine` are impossible, each with a fix."""
    if partition and _parts_of(partition) == 0:
        yield f'no GPU has partitions of "{partition}"', "use a size such as 1g.5gb, 2g.10gb, 3g.20gb or 7g.40gb"
    elif partition and not any(kind in (gpu or machine.gpu) for kind in _PARTITIONED):
        yield f"{gpu or machine.gpu or 'a machine without GPUs'} has no partitions", "remove the partition size"
    if not count and not gpu:
        return
    limits = next((limits for name, limits in _ATTACHED.items() if gpu_matches(gpu, name)), {})
    if machine.gpus:
        if gpu and not gpu_matches(gpu, machine.gpu):
            yield f"{machine.name} comes with {machine.gpu}, not {gpu}", f"name {machine.gpu}, or remove the GPU"
        elif count and count != machine.gpus:
            yield f"{machine.name} has {machine.gpus} GPUs, not {count}", "remove the number: the machine type sets it"
    elif machine.family != "n1" or not limits:
        yield f"{machine.family} machines cannot have {gpu or 'attached GPUs'}", f"on n1: {', '.join(_ATTACHED)}"
    elif count and machine.vcpu > limits.get(count, 0):
        allowed = ", ".join(f"{number} up to {most} vCPUs" for number, most in limits.items())
        yield f"{machine.name} cannot have {count} of {gpu}", f"it can have {allowed}"
