"""The filters say which nodes a pod may run on, as kube-scheduler's do: labels, affinity, taints, host ports.

Source: Kubernetes 1.34-1.36, pkg/scheduler/framework/plugins (TaintToleration, NodeAffinity, NodePorts).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from symphony_charts.placement.pools.pool import HostPort, Requirement, Taint
from symphony_charts.spec.scheduling import Toleration

__all__ = ["NodeAffinity", "Requirement", "Term", "labels_match", "ports_conflict", "tolerates", "untolerated_taint"]


Term = tuple[Requirement, ...]
NodeAffinity = tuple[Term, ...]  # one of the terms must hold; a term without requirements never holds


def labels_match(
    selector: Mapping[str, str],
    affinity: NodeAffinity | None,
    labels: Mapping[str, str],
    node: str = "",
    *,
    assumed: Container[str] = (),
    ruled_out: Container[str] = (),
) -> bool:
    """Return True if node selector and required node affinity accept a node; `affinity` None means that there is none.

    What is asked of the labels `assumed` holds, and nothing holds of those that are `ruled_out`.
    """

    def holds(requirement: Requirement) -> bool:
        key = "" if requirement.is_field else requirement.key
        return key in assumed or (key not in ruled_out and requirement.holds(labels, node))

    if any((key in ruled_out or labels.get(key) != value) and key not in assumed for key, value in selector.items()):
        return False
    if affinity is None:
        return True
    return any(term and all(holds(requirement) for requirement in term) for term in affinity)


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Return True if one of `tolerations` tolerates `taint`. Exists without a key tolerates all."""
    for toleration in tolerations:
        if toleration.effect is not None and toleration.effect != taint.effect:
            continue
        if toleration.key and toleration.key != taint.key:
            continue
        if toleration.operator == "Exists":
            return True
        if toleration.key and (toleration.value or "") == taint.value:
            return True
    return False


def untolerated_taint(tolerations: Iterable[Toleration], taints: Iterable[Taint]) -> Taint | None:
    """Return the first taint that keeps the pod away (PreferNoSchedule never does), or None."""
    accepted = tuple(tolerations)
    return next((t for t in taints if t.effect != "PreferNoSchedule" and not tolerates(accepted, t)), None)


def ports_conflict(wanted: frozenset[HostPort], held: frozenset[HostPort]) -> bool:
    """Return True if a host port is wanted twice: by equal addresses, or by one of them on all addresses."""
    return any(
        port[:2] == other[:2] and (port.address == other.address or not (port.address and other.address))
        for port in wanted
        for other in held
    )
