"""Read pools.yaml, our short format for any cluster: GKE machines by name, or nodes by their resources.

pools:
  - name: std8
    machine_type: n1-standard-8        # a machine of the catalogue: allocatable follows from the GKE model
    max_nodes: 128
  - name: lab                          # or any node: Allocatable as in `kubectl describe node`
    allocatable: {cpu: "31", memory: 60Gi, nvidia.com/gpu: 2}
    system: {cpu: 300m, memory: 500Mi, pods: 6}
    labels: {room: "12"}
    selector: {room: "12"}
    max_nodes: 3
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from typing import get_args

from symphony_charts.formats.field_reader import Fields
from symphony_charts.formats.names import nearest
from symphony_charts.placement.catalog import Catalog
from symphony_charts.placement.fit.podspec import amounts_in
from symphony_charts.placement.pools.gke_node_pool import make_pool
from symphony_charts.placement.pools.node_config import NodePoolConfig, read_taints
from symphony_charts.placement.pools.pool import ZONE, Pool, Pools, Provisioning

_KNOWN = {
    "name", "machine_type", "max_nodes", "min_nodes", "nodes", "zones", "labels", "taints", "gpu", "version", "image",
    "disk_gib", "max_pods", "provisioning", "placement", "reservation", "tpu_topology", "allocatable", "system",
    "selector", "arch", "streaming", "queued", "local_ssds",
}  # fmt: skip
_INNER = {"gpu": {"type", "count", "partition", "sharing", "clients"}, "taints": {"key", "value", "effect"}}


def read_plain(top: Fields, catalog: Catalog) -> Pools:
    """Return the pools of a pools.yaml; `kube_system: elsewhere`: kube-system's Deployments run on other pools."""
    for key in sorted(set(top.data) - {"pools", "kube_system"}):
        top.fault(f'unknown key "{key}"', key, "the keys are pools and kube_system")
    if top.text("kube_system") not in ("", "here", "elsewhere"):
        top.fault(f'unknown kube_system "{top.text("kube_system")}"', "kube_system", "use here or elsewhere")
    pools: list[Pool | None] = []
    for item in top.blocks("pools"):
        _refuse_unknown(item, _KNOWN)
        for inner in _INNER:
            for block in item.blocks(inner) if isinstance(item.data.get(inner), (dict, list)) else ():
                _refuse_unknown(block, _INNER[inner])
        name = item.text("name", required=True)
        if not name:
            continue
        if item.has("allocatable"):
            pools.append(_stated(item, name))
        elif item.has("machine_type"):
            pools.append(_modelled(item, name, catalog))
        else:
            item.fault("machine_type or allocatable is missing")
    workloads = () if top.text("kube_system") == "elsewhere" else None
    return Pools(pools=tuple(filter(None, pools)), workloads=workloads)


def _refuse_unknown(item: Fields, known: Set[str]) -> None:
    for key in sorted(item.data.keys() - known):
        similar = (name for name in sorted(known) if name.startswith(key) or name.endswith(key))
        meant = next(similar, nearest(key, known))
        hint = f'did you mean "{meant}"?' if meant else f"the keys are {', '.join(sorted(known))}"
        item.fault(f'unknown key "{key}"', key, hint)


def _count(item: Fields) -> tuple[int, int]:
    fixed = item.number("nodes")
    if fixed is not None:
        return fixed, fixed
    high = item.number("max_nodes")
    if high is None:
        item.fault("max_nodes (or nodes) is missing")
    return item.number("min_nodes") or 0, high or 0


def _provisioning(item: Fields) -> Provisioning:
    wanted = item.text("provisioning") or "standard"
    known = next((kind for kind in get_args(Provisioning) if kind == wanted), None)
    if known is None:
        item.fault(f'unknown provisioning "{wanted}"', "provisioning", "use standard, spot, preemptible or flex-start")
    return known or "standard"


def _modelled(item: Fields, name: str, catalog: Catalog) -> Pool | None:
    low, high = _count(item)
    gpu = item.block("gpu")
    config = NodePoolConfig(
        name=name,
        source=item.faults.source(item.path),
        machine_type=item.text("machine_type"),
        machine_field=Fields({}, item.at("machine_type"), item.faults),
        image=item.text("image"),
        disk_gib=item.number("disk_gib", minimum=10) or 100,
        ephemeral_ssds=item.number("local_ssds"),
        labels=item.mapping("labels"),
        taints=read_taints(item, "taints"),
        gpu_type=gpu.text("type"),
        gpu_count=gpu.number("count") or 0,
        gpu_partition=gpu.text("partition"),
        gpu_sharing=gpu.text("sharing"),
        gpu_clients=gpu.number("clients") or 1,
        provisioning=_provisioning(item),
        zones=tuple(item.texts("zones")),
        min_nodes=low,
        max_nodes=high,
        max_pods=item.number("max_pods", minimum=1) or 110,
        placement=item.text("placement"),
        tpu_topology=item.text("tpu_topology"),
        reservation=item.text("reservation"),
        queued=item.flag("queued"),
        streaming=item.flag("streaming"),
    )
    pool = make_pool(config, catalog)
    selector = _selector(item)
    return replace(pool, selector=selector) if pool is not None and selector else pool


def _selector(item: Fields) -> tuple[str, str] | None:
    chosen = item.mapping("selector")
    if len(chosen) > 1:
        item.fault("the selector has more than one label", "selector")
    return next(iter(chosen.items()), None)


def _stated(item: Fields, name: str) -> Pool:
    low, high = _count(item)
    offered = {"pods": item.number("max_pods", minimum=1) or 110} | amounts_in(item.block("allocatable"))
    zones = tuple(item.texts("zones"))
    arch = item.text("arch") or "amd64"
    labels = {"kubernetes.io/os": "linux", "kubernetes.io/arch": arch}
    labels |= {f"beta.{key}": value for key, value in labels.items()}
    labels |= {ZONE: zones[0]} if len(zones) == 1 else {}
    gpu = item.block("gpu")
    for needed in ("cpu", "memory"):
        if needed not in offered:
            item.fault(f"allocatable.{needed} is missing", "allocatable")
    return Pool(
        name=name,
        source=item.faults.source(item.path),
        machine_type=item.text("machine_type"),
        vcpu=-(-offered.get("cpu", 0) // 1000),
        memory_mib=offered.get("memory", 0) >> 20,
        arch=arch,
        allocatable=offered,
        accuracy="stated",
        system=amounts_in(item.block("system")),
        labels=labels | item.mapping("labels"),
        taints=read_taints(item, "taints"),
        zones=zones,
        min_nodes=low,
        max_nodes=high,
        provisioning=_provisioning(item),
        gpu_type=gpu.text("type"),
        gpus=offered.get("nvidia.com/gpu", 0),
        selector=_selector(item),
    )
