"""Pods that are on live nodes keep others off by required anti-affinity, in either direction.

Source: kube-scheduler, plugin InterPodAffinity: terms of present pods count as much as those of the incoming one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from symphony_charts.placement.fit.demand import Demand, Shape, is_of_controllers
from symphony_charts.placement.pools.pool import HOSTNAME, AntiAffinity, Node, Pool, PresentPod

__all__ = ["Domains", "closed_domains"]

Domains = dict[str, dict[str, str]]
"""Node label -> its value -> why a pod may not use the nodes that have this value."""

_OF_JOBSET = "jobset.sigs.k8s.io/"


def closed_domains(pools: Sequence[Pool], demands: Sequence[Demand]) -> list[Domains]:
    """Return, for each demand, the domains that anti-affinity with a present pod may close to it, and why.

    A term counts within namespaces, and a chart can be installed in any: so a domain *may* be closed, unless both
    namespaces are known and differ.
    """
    nodes = [node for pool in pools for node in pool.nodes if node.pods]
    repelling = {
        (term, value, pod.namespace): pod
        for node in nodes
        for pod in node.pods
        for term in pod.anti_affinity
        for value in _values(node, term)
    }
    return [_closed_to(demand.shape, nodes, repelling) for demand in demands]


def _closed_to(
    shape: Shape, nodes: Sequence[Node], repelling: Mapping[tuple[AntiAffinity, str, str], PresentPod]
) -> Domains:
    domains: Domains = {}
    for (term, value, _), pod in repelling.items():
        if _may_share_namespace(term, pod, shape) and _may_select(term, shape):
            domains.setdefault(term.key, {}).setdefault(value, _why("anti-affinity of", pod, term, value))
    for term in shape.anti_affinity:
        for node in nodes:
            found = (pod for pod in node.pods if _may_share_namespace(term, pod, shape) and _matches(term, pod))
            for value in _values(node, term):
                for pod in islice(found, 1):
                    domains.setdefault(term.key, {}).setdefault(value, _why("its anti-affinity to", pod, term, value))
    return domains


def _values(node: Node, term: AntiAffinity) -> Iterator[str]:
    value = node.labels.get(term.key, node.name if term.key == HOSTNAME else None)
    if value is not None:
        yield value


def _may_share_namespace(term: AntiAffinity, pod: PresentPod, shape: Shape) -> bool:
    return term.is_scoped or not shape.namespace or shape.namespace == pod.namespace


def _matches(term: AntiAffinity, pod: PresentPod) -> bool:
    return all(requirement.holds(pod.labels, "") for requirement in term.selector)


def _may_select(term: AntiAffinity, shape: Shape) -> bool:
    """Return True unless a label rules it out: controllers may add labels of theirs to the pods of `shape`."""
    labels = dict(shape.labels)
    return all(
        requirement.holds(labels, "")
        or (is_of_controllers(requirement.key) and (shape.is_of_jobset or not requirement.key.startswith(_OF_JOBSET)))
        for requirement in term.selector
    )


def _why(what: str, pod: PresentPod, term: AntiAffinity, value: str) -> str:
    where = f"node {value}" if term.key == HOSTNAME else f"nodes with {term.key}={value}"
    return f"{what} pod {pod.namespace}/{pod.name} on the cluster may keep it off {where}"
