"""`with_node_costs` says what experiments on a cluster cost, by the prices of the nodes that they are on.

A node counts whole, as in a plan, from the first start to the last end of the experiment's processes there.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from symphony_charts.backend.cost import Cost
from symphony_charts.backend.protocol import Watcher
from symphony_charts.backend.status import FINAL, ExperimentStatus, InstanceStatus
from symphony_charts.errors import SymphError
from symphony_charts.kubernetes.client import KubeApi
from symphony_charts.kubernetes.experiments import KubeExperiments
from symphony_charts.placement.pools.files import user_catalog, user_prices
from symphony_charts.placement.pools.readers import pools_of_data
from symphony_charts.placement.report.money import no_price

__all__ = ["NodePrice", "cost_on", "price_of_node", "with_node_costs"]

# More nodes than this are asked for at once.
_FEW = 16
# Labels of nodes with local SSDs, which say that there are some and not how many.
_SSD = ("cloud.google.com/gke-local-nvme-ssd", "cloud.google.com/gke-ephemeral-storage-local-ssd")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePrice:
    """What a node costs an hour; None with a text of what it is, where nobody lists a price."""

    per_hour: float | None
    unpriced: str = ""


def with_node_costs(watcher: Watcher, statuses: Sequence[ExperimentStatus]) -> list[ExperimentStatus]:
    """The statuses with what they cost so far; without where the nodes may not be read, or are none of a cloud's."""
    if not isinstance(watcher, KubeExperiments):
        return list(statuses)
    places = {instance.place for status in statuses for instance in status.instances if instance.place}
    try:
        nodes = _nodes(watcher.api, places)
    except SymphError:
        # Many who may look at their own pods may not read nodes.
        return list(statuses)
    now = time.time()
    return [replace(status, cost=cost_on(nodes, status, now)) for status in statuses]


def cost_on(nodes: Mapping[str, NodePrice], status: ExperimentStatus, now: float) -> Cost | None:
    """What an experiment has cost on these nodes, by their names; None where not one of its nodes is of a known type.

    Nodes and pods that are gone are named as what has no price.
    """
    hours: dict[str, float] = {}
    for place in dict.fromkeys(instance.place for instance in status.instances if instance.place):
        there = [instance for instance in status.instances if instance.place == place and instance.started is not None]
        ends = [now if instance.ended is None else instance.ended for instance in there]
        begins = [instance.started for instance in there if instance.started is not None]
        if there:
            hours[place] = max(0.0, max(ends) - min(begins)) / 3600
    known = {place: nodes[place] for place in hours if place in nodes}
    priced = {place: node.per_hour for place, node in known.items() if node.per_hour is not None}
    if not priced:
        return None
    missing = [node.unpriced for node in known.values() if node.unpriced]
    missing += [f"{place}, a node that is gone" for place in hours if place not in nodes]
    missing += [f"{each.path}, whose pod is gone" for each in status.instances if _has_run(each) and not each.place]
    count = len(priced)
    return Cost(
        total=sum(price * hours[place] for place, price in priced.items()),
        per_hour=round(sum(priced.values()), 6),
        source=f"for {count} node{'s' if count > 1 else ''}",
        unpriced=tuple(dict.fromkeys(missing)),
    )


def _has_run(instance: InstanceStatus) -> bool:
    return instance.started is not None or instance.phase in FINAL


def _nodes(api: KubeApi, places: Iterable[str]) -> dict[str, NodePrice]:
    """The prices of the nodes of these names that are there. Raises ToolFailed where they may not be read."""
    wanted, path = sorted(places), api.collection("v1", "Node", None)
    if len(wanted) > _FEW:
        found = api.listed(path)
    else:
        found = [item for name in wanted for item in api.listed(path, fields=f"metadata.name={name}")]
    return {item["metadata"]["name"]: price_of_node(item) for item in found if item["metadata"]["name"] in wanted}


def price_of_node(node: Mapping[str, Any]) -> NodePrice:
    """The price of a node, as a pool of its own: those of one pool may be of several types."""
    labels = node["metadata"].get("labels") or {}
    listed = {"apiVersion": "v1", "kind": "List", "items": [{**node, "kind": "Node"}]}
    (pool,) = pools_of_data(listed, catalog=user_catalog()).pools
    has_ssds = any(labels.get(label) == "true" for label in _SSD)
    prices = user_prices()
    price = None if has_ssds else prices.price_of(pool, spot=pool.is_spot)
    return NodePrice(per_hour=price, unpriced="" if price is not None else no_price(pool, 1, prices))
