"""Read live nodes with their pods, and the `--system` option about system pods.

`kubectl get nodes,pods,daemonsets -A -o json` gives all three: the requests of running pods are subtracted from each
node, and the DaemonSets give the system load of a new node.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from symphony_charts.errors import SpecError
from symphony_charts.formats.field_reader import Faults, Fields
from symphony_charts.formats.quantity import amount_of
from symphony_charts.placement.allocatable import Amounts, system_profile
from symphony_charts.placement.catalog import Catalog, slice_hosts
from symphony_charts.placement.fit.podspec import (
    amounts_in,
    labels_match,
    pod_ports,
    pod_requests,
    read_anti_affinity,
    read_node_affinity,
    read_tolerations,
    untolerated_taint,
)
from symphony_charts.placement.pools.node_config import read_taints
from symphony_charts.placement.pools.pool import (
    GKE_POOL_LABEL,
    HOSTNAME,
    ZONE,
    HostPort,
    Node,
    Pool,
    Pools,
    PresentPod,
    Provisioning,
    Taint,
    Tpu,
    Uncertainty,
)

_POOL_LABELS = (
    GKE_POOL_LABEL,
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    "karpenter.sh/nodepool",
    "node.kubernetes.io/instance-type",
)
# Labels that differ between the nodes of one pool and so do not apply to new nodes.
_OF_ONE_NODE = (HOSTNAME, "topology.gke.io/zone", ZONE)
_GONE = {"Succeeded", "Failed"}
# Taints of a node's present condition, which new nodes of its pool do not have.
_CONDITIONS = frozenset(
    f"node.kubernetes.io/{condition}"
    for condition in ("disk-pressure", "memory-pressure", "network-unavailable", "not-ready", "pid-pressure",
                      "unreachable", "unschedulable")
)  # fmt: skip


def read_nodes(items: Iterable[Fields], faults: Faults, catalog: Catalog) -> list[Pool]:
    """Return one pool per node-pool label; nodes without a label are in pool ``nodes``."""
    sorted_items: dict[str, list[Fields]] = defaultdict(list)
    for item in items:
        sorted_items[item.text("kind") or "Node"].append(item)
    load = _load(sorted_items["Pod"])
    pools: dict[tuple[str, str], list[Node]] = defaultdict(list)
    uncertainties: dict[tuple[str, str], list[Uncertainty]] = defaultdict(list)
    for item in sorted_items["Node"]:
        node = _read_node(item, load)
        key = next((label for label in _POOL_LABELS if label in node.labels), "")
        pool = key, node.labels.get(key, "nodes")
        pools[pool].append(node)
        for pod in load[node.name].nominated[:1]:
            text = f"node {node.name} reserves room for the pending pod {pod}, which may run on another node"
            uncertainties[pool].append(Uncertainty(text=text, weight="PROVEN", may_grow=True))
    daemons, knows_load = sorted_items["DaemonSet"], bool(sorted_items["Pod"])
    return [
        _make_pool(key, nodes, daemons, knows_load, faults, catalog, uncertainties[key]) for key, nodes in pools.items()
    ]


def pending_pods(items: Iterable[Fields]) -> Iterator[Fields]:
    for item in items:
        meta, status = item.block("metadata"), item.block("status")
        is_over = status.text("phase") in _GONE or meta.has("deletionTimestamp")
        if item.text("kind") == "Pod" and not item.block("spec").has("nodeName") and not is_over:
            yield item


@dataclass(slots=True)
class _Load:
    """The pods of one node, their requests, and their host ports; `nominated` are pods that are still to come."""

    used: Counter[str] = field(default_factory=Counter)
    ports: set[HostPort] = field(default_factory=set)
    pods: list[PresentPod] = field(default_factory=list)
    nominated: list[str] = field(default_factory=list)


def _load(pods: Iterable[Fields]) -> dict[str, _Load]:
    loads: dict[str, _Load] = defaultdict(_Load)
    for pod in pods:
        meta, spec, status = pod.block("metadata"), pod.block("spec"), pod.block("status")
        node = spec.text("nodeName") or status.text("nominatedNodeName")
        if not node or status.text("phase") in _GONE:
            continue
        load = loads[node]
        if not spec.has("nodeName"):
            load.nominated.append(f"{meta.text('namespace')}/{meta.text('name')}")
        load.used.update(pod_requests(spec, status=status))
        load.ports |= pod_ports(spec)
        load.pods.append(
            PresentPod(
                name=meta.text("name"),
                namespace=meta.text("namespace"),
                labels=meta.mapping("labels"),
                anti_affinity=read_anti_affinity(spec),
            )
        )
    return loads


def _read_node(item: Fields, loads: Mapping[str, _Load]) -> Node:
    meta, spec, status = item.block("metadata"), item.block("spec"), item.block("status")
    name = meta.text("name", required=True)
    offered = status.block("allocatable")
    if not offered.data:
        status.fault('"allocatable" is missing', "", "give the whole output of `kubectl get nodes -o json`")
    allocatable = amounts_in(offered)
    load = loads.get(name, _Load())
    return Node(
        name=name,
        allocatable=allocatable,
        free={resource: amount - load.used[resource] for resource, amount in allocatable.items()},
        labels=meta.mapping("labels"),
        taints=tuple(dict.fromkeys((*read_taints(spec, "taints"), *_condition_taints(item)))),
        ports=frozenset(load.ports),
        pods=tuple(load.pods),
    )


def _condition_taints(node: Fields) -> Iterator[Taint]:
    """Yield the taints that the node controller adds to cordoned nodes and to nodes that are not ready."""
    if node.block("spec").flag("unschedulable"):
        yield Taint(key="node.kubernetes.io/unschedulable")
    ready = {each.text("type"): each.text("status") for each in node.block("status").blocks("conditions")}
    if ready.get("Ready", "True") != "True":
        yield Taint(key="node.kubernetes.io/not-ready")


def _make_pool(
    key: tuple[str, str],
    nodes: list[Node],
    daemons: list[Fields],
    knows_load: bool,
    faults: Faults,
    catalog: Catalog,
    uncertainties: list[Uncertainty],
) -> Pool:
    label, name = key
    first = nodes[0]
    # For devices, use the node with most of them: on others the driver may still be starting.
    allocatable = {
        resource: (max if "/" in resource else min)(node.allocatable.get(resource, 0) for node in nodes)
        for resource in sorted({name for node in nodes for name in node.allocatable})
    }
    labels = {k: v for k, v in first.labels.items() if all(n.labels.get(k) == v for n in nodes)}
    machine = catalog.get(labels.get("node.kubernetes.io/instance-type", ""))
    gpus, chips = allocatable.get("nvidia.com/gpu", 0), allocatable.get("google.com/tpu", 0)
    lasting = (taint for taint in first.taints if taint.key not in _CONDITIONS)
    taints = tuple(taint for taint in lasting if all(taint in node.taints for node in nodes))
    system = daemon_requests(daemons, labels, taints) if daemons else system_profile(gpu=gpus > 0, tpu=chips > 0)
    if not knows_load:
        nodes = [_on(node, {}, system) for node in nodes]
    gpu_type = labels.get("cloud.google.com/gke-accelerator", "")
    without = sum(not node.allocatable.get("nvidia.com/gpu") for node in nodes)
    if without and gpu_type:
        text = f"{without} of {len(nodes)} nodes show no GPU; their driver may still be starting"
        uncertainties.append(Uncertainty(text=text, weight="PROVEN", may_grow=True))
    note = "the input has no pods: symph subtracts only system pods"
    if not daemons and label != GKE_POOL_LABEL:
        note = (
            "the input has no pods: symph subtracts GKE's system pods, although these are not GKE nodes;"
            " give `kubectl get nodes,pods -A -o json`, or --system"
        )
    zones = sorted({node.labels.get(ZONE, "") for node in nodes} - {""})
    return Pool(
        name=name,
        source=faults.file,
        machine_type=machine.name if machine else labels.get("node.kubernetes.io/instance-type", ""),
        vcpu=machine.vcpu if machine else allocatable.get("cpu", 0) // 1000,
        memory_mib=machine.memory_mib if machine else allocatable.get("memory", 0) >> 20,
        arch=labels.get("kubernetes.io/arch", "amd64"),
        allocatable=allocatable,
        accuracy="live",
        system=system,
        labels={k: v for k, v in labels.items() if k not in _OF_ONE_NODE or len(zones) == 1},
        taints=taints,
        zones=tuple(zones),
        min_nodes=len(nodes),
        max_nodes=len(nodes),
        provisioning=_provisioning(labels),
        gpu_type=gpu_type,
        gpus=gpus,
        attached_gpus=gpus if machine and not machine.gpus else 0,
        tpu=_tpu(labels, chips, faults),
        placement=labels.get("cloud.google.com/placement-policy-name", ""),
        reservation=labels.get("cloud.google.com/reservation-name", ""),
        selector=(label, name) if label else None,
        nodes=tuple(sorted(nodes, key=lambda node: node.name)),
        is_load_known=knows_load,
        notes=() if knows_load else (note,),
        uncertainties=tuple(uncertainties),
    )


def daemon_requests(daemons: list[Fields], labels: Mapping[str, str], taints: tuple[Taint, ...]) -> Amounts:
    """Return the total requests of the DaemonSets whose pods run on such a node."""
    total = Counter[str]()
    for daemon in daemons:
        spec = daemon.block("spec").block("template").block("spec")
        fits = labels_match(spec.mapping("nodeSelector"), read_node_affinity(spec), labels)
        if fits and untolerated_taint(read_tolerations(spec), taints) is None:
            total.update(pod_requests(spec))
    return dict(total)


def _provisioning(labels: Mapping[str, str]) -> Provisioning:
    kinds: tuple[Provisioning, ...] = ("spot", "flex-start", "preemptible")
    return next((kind for kind in kinds if labels.get(f"cloud.google.com/gke-{kind}") == "true"), "standard")


def _tpu(labels: Mapping[str, str], chips: int, faults: Faults) -> Tpu | None:
    label = "cloud.google.com/gke-tpu-topology"
    topology = labels.get(label, "")
    if not chips or not topology:
        return None
    try:
        hosts = slice_hosts(topology, chips)
    except ValueError as error:
        faults.add(str(error), label)
        return None
    kind = labels.get("cloud.google.com/gke-tpu-accelerator", "")
    return Tpu(type=kind, topology=topology, chips=chips, hosts=hosts)


ELSEWHERE = "elsewhere"
_NEXT = "give cpu=470m,memory=774Mi,pods=12, a file of `kubectl get daemonsets,deployments -A -o json`, or elsewhere"


def with_system_amounts(pools: Pools, text: str) -> Pools:
    """Return `pools` with system requests per node as in ``cpu=470m,memory=774Mi``; other amounts are kept.

    ``elsewhere``: kube-system's Deployments run on pools that no file shows. Raises SpecError for other texts.
    """
    if text == ELSEWHERE:
        return replace(pools, workloads=())
    if "=" not in text:
        raise SpecError.one(f"--system {text}: it is neither a file nor amounts", next=_NEXT)
    amounts: Amounts = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        try:
            amounts[name.strip()] = amount_of(name.strip(), value.strip())
        except ValueError as error:
            raise SpecError.one(f"--system {text}: {error}", next=_NEXT) from error
    if not amounts.keys() <= {"cpu", "memory", "pods", "ephemeral-storage"}:
        raise SpecError.one(f"--system {text}: it sets only cpu, memory, pods and ephemeral-storage", next=_NEXT)
    return replace(pools, pools=tuple(_with(pool, {**pool.system, **amounts}) for pool in pools.pools))


def with_system_objects(pools: Pools, items: Sequence[Fields], faults: Faults) -> Pools:
    """Return `pools` with the DaemonSets subtracted from their nodes, and the Deployments once for the cluster.

    Raises SpecError if `items` have neither.
    """
    daemons = [item for item in items if item.text("kind") == "DaemonSet"]
    deployments = [item.data for item in items if item.text("kind") in ("Deployment", "StatefulSet")]
    if not daemons and not deployments:
        raise SpecError.one("this file has no DaemonSets or Deployments", at=faults.file, next=_NEXT)
    changed = pools.pools
    if daemons:
        changed = tuple(_with(pool, daemon_requests(daemons, pool.labels, pool.taints)) for pool in pools.pools)
    faults.check()
    return replace(pools, pools=changed, workloads=tuple(deployments) if deployments else pools.workloads)


def _with(pool: Pool, system: Mapping[str, int]) -> Pool:
    if pool.is_load_known:
        return pool
    uncertainties = tuple(uncertainty for uncertainty in pool.uncertainties if not uncertainty.of_system)
    nodes = tuple(_on(node, pool.system, system) for node in pool.nodes)
    return replace(pool, system=system, uncertainties=uncertainties, nodes=nodes)


def _on(node: Node, before: Mapping[str, int], now: Mapping[str, int]) -> Node:
    free = {name: max(0, amount + before.get(name, 0) - now.get(name, 0)) for name, amount in node.free.items()}
    return replace(node, free=free)
