"""`--system` says what the owner's own pods take of a node, whatever format the pools were read from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from symphony_charts.errors import SpecError
from symphony_charts.formats.field_reader import Faults, Fields
from symphony_charts.formats.quantity import amount_of
from symphony_charts.placement.pools.nodes import daemon_requests
from symphony_charts.placement.pools.pool import Amounts, Node, Pool, Pools

__all__ = ["ELSEWHERE", "with_system_amounts", "with_system_objects"]

ELSEWHERE = "elsewhere"
_NEXT = "such as cpu=470m,memory=774Mi,pods=12, a file of `kubectl get daemonsets,deployments -A -o json`, or elsewhere"


def with_system_amounts(pools: Pools, text: str) -> Pools:
    """`pools` with what system pods take of each node, as in ``cpu=470m,memory=774Mi``; what is not said stays.

    ``elsewhere`` says that kube-system's Deployments run on pools that no file shows. Raises SpecError for other texts.
    """
    if text == ELSEWHERE:
        return replace(pools, workloads=())
    amounts: Amounts = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        try:
            amounts[name.strip()] = amount_of(name.strip(), value.strip())
        except ValueError as error:
            raise SpecError.one(f"--system {text}: {error}", next=_NEXT) from error
    if not amounts.keys() <= {"cpu", "memory", "pods", "ephemeral-storage"}:
        raise SpecError.one(f"--system {text}: cpu, memory, pods and ephemeral-storage can be said", next=_NEXT)
    return replace(pools, pools=tuple(_with(pool, {**pool.system, **amounts}) for pool in pools.pools))


def with_system_objects(pools: Pools, data: object, name: str) -> Pools:
    """`pools` with the DaemonSets of a list taken off each node they run on, and its Deployments once for the cluster.

    Raises SpecError where the list has neither.
    """
    faults = Faults(file=name)
    listed = data.get("items", [data]) if isinstance(data, dict) else data if isinstance(data, list) else []
    items = [Fields.of(item, f"items[{index}]", faults) for index, item in enumerate(listed)]
    daemons = [item for item in items if item.text("kind") == "DaemonSet"]
    deployments = [item.data for item in items if item.text("kind") in ("Deployment", "StatefulSet")]
    if not daemons and not deployments:
        raise SpecError.one("no DaemonSets and no Deployments in this file", at=name, next=_NEXT)
    changed = [
        _with(pool, daemon_requests(daemons, pool.labels, pool.taints)) if daemons else pool for pool in pools.pools
    ]
    faults.check()
    return replace(pools, pools=tuple(changed), workloads=tuple(deployments) if deployments else pools.workloads)


def _with(pool: Pool, system: Mapping[str, int]) -> Pool:
    if pool.is_load_known:
        return pool
    uncertainties = tuple(uncertainty for uncertainty in pool.uncertainties if not uncertainty.of_system)
    return replace(
        pool,
        system=system,
        uncertainties=uncertainties,
        nodes=tuple(_on(node, pool.system, system) for node in pool.nodes),
    )


def _on(node: Node, before: Mapping[str, int], now: Mapping[str, int]) -> Node:
    free = {name: max(0, amount + before.get(name, 0) - now.get(name, 0)) for name, amount in node.free.items()}
    return replace(node, free=free)
