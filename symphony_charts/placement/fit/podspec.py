"""Read requests, ports, tolerations and affinity of a pod spec, and apply the filters of the kube-scheduler.

Source: KEP-753 (sidecars) and k8s.io/component-helpers/resource: the effective request is the maximum of the running
containers with sidecars, and of each init container with the sidecars started before it, plus overhead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterable, Mapping

from symphony_charts.formats.field_reader import Fields
from symphony_charts.formats.quantity import amount_of
from symphony_charts.placement.allocatable import Amounts
from symphony_charts.placement.pools.pool import AntiAffinity, HostPort, Requirement, Taint
from symphony_charts.spec.sources import Toleration

# Source: Kubernetes 1.34-1.36, pkg/scheduler/framework/plugins (TaintToleration, NodeAffinity, NodePorts).

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
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
    """Return True if node selector and required node affinity accept a node; `affinity` None means no affinity.

    Requirements on the labels `assumed` always hold; those on `ruled_out` never do.
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
    return any(
        toleration.effect in (None, taint.effect)
        and toleration.key in (None, "", taint.key)
        and (toleration.operator == "Exists" or (toleration.key and (toleration.value or "") == taint.value))
        for toleration in tolerations
    )


def untolerated_taint(tolerations: Iterable[Toleration], taints: Iterable[Taint]) -> Taint | None:
    """Return the first taint that keeps the pod away (PreferNoSchedule never does), or None."""
    accepted = tuple(tolerations)
    return next((t for t in taints if t.effect != "PreferNoSchedule" and not tolerates(accepted, t)), None)


def ports_conflict(wanted: Collection[HostPort], held: Collection[HostPort]) -> bool:
    """Return True if a host port conflicts: equal addresses, or one of them on all addresses."""
    return any(
        port[:2] == other[:2] and (port.address == other.address or not (port.address and other.address))
        for port in wanted
        for other in held
    )


# Fields of an affinity term that restrict it to namespaces, or to some of its own pods.
_SCOPES = ("namespaces", "namespaceSelector", "matchLabelKeys", "mismatchLabelKeys")


def pod_requests(spec: Fields, *, with_steps: bool = True, status: Fields | None = None) -> Amounts:
    """Return the effective request of a pod spec, with its pod slot.

    Without `with_steps`, init containers that end are ignored. A resize in place, which the `status` of a running pod
    shows, counts where it differs from the spec.
    """
    running, sidecars, peak = Counter[str](), Counter[str](), Counter[str]()
    for item in spec.blocks("containers"):
        running.update(_container(item, status))
    for item in spec.blocks("initContainers"):
        request, is_sidecar = _container(item, status), _is_sidecar(item)
        started = Counter(sidecars)
        started.update(request)
        if is_sidecar:
            running.update(request)
            sidecars = started
        if is_sidecar or with_steps:
            _raise(peak, started)
    _raise(peak, running)
    peak["pods"] = 1
    if spec.has("resources"):
        _set_pod_level(spec, peak)
    if spec.has("overhead"):
        peak.update(amounts_in(spec.block("overhead")))
    return dict(peak)


def _set_pod_level(spec: Fields, total: Amounts) -> None:
    """Replace the sum of the containers by the resources of the pod as a whole; report what the API server refuses.

    Source: kubernetes, pkg/apis/core/v1/defaults.go (defaultPodRequests) and validation.go: if only a limit is set,
    the request is what the containers request, if they request it, else the limit.
    """
    level = spec.block("resources")
    requests, limits = amounts_in(level.block("requests")), amounts_in(level.block("limits"))
    for name, limit in limits.items():
        requests.setdefault(name, limit if name.startswith("hugepages-") else total.get(name, limit))
        if requests[name] > limit:
            level.fault(f"the pod's limit of {name} is below its request", f"limits.{name}", "raise the limit")
    for name, request in requests.items():
        if request < total.get(name, 0):
            what = f"the pod's request of {name} is below the sum of its containers"
            level.fault(what, f"requests.{name}", "raise or remove it")
        total[name] = request


def gpus_at_once(spec: Fields) -> int:
    """Return the most GPUs that one container requests; 0 unless it is more than one."""
    containers = (*spec.blocks("containers"), *spec.blocks("initContainers"))
    most = max((_container(item).get("nvidia.com/gpu", 0) for item in containers), default=0)
    return most if most > 1 else 0


def pod_ports(spec: Fields) -> frozenset[HostPort]:
    """Return the host ports of a pod: declared ones, and all container ports under hostNetwork; no steps.

    Source: kube-scheduler, GetHostPorts; all addresses are 0.0.0.0 there.
    """
    on_host = spec.flag("hostNetwork")
    ports = set()
    sidecars = (item for item in spec.blocks("initContainers") if _is_sidecar(item))
    for container in (*spec.blocks("containers"), *sidecars):
        for port in container.blocks("ports"):
            number = port.number("hostPort") or (port.number("containerPort") if on_host else None)
            if number:
                address = port.text("hostIP").removeprefix("0.0.0.0")  # noqa: S104 - all addresses
                ports.add(HostPort(port.text("protocol") or "TCP", number, address))
    return frozenset(ports)


def read_tolerations(spec: Fields) -> tuple[Toleration, ...]:
    return tuple(
        Toleration(
            key=item.text("key") or None,
            operator=item.text("operator") or None,  # type: ignore[arg-type]  # the API server accepts no other
            value=item.text("value") or None,
            effect=item.text("effect") or None,  # type: ignore[arg-type]  # likewise
        )
        for item in spec.blocks("tolerations")
    )


def read_node_affinity(spec: Fields) -> NodeAffinity | None:
    """Return the required node affinity of a pod spec; None when there is none."""
    if not spec.has("affinity"):
        return None
    required = spec.block("affinity").block("nodeAffinity").block(REQUIRED)
    if not required.data:
        return None
    return tuple(_term(item) for item in required.blocks("nodeSelectorTerms"))


def read_anti_affinity(spec: Fields) -> tuple[AntiAffinity, ...]:
    """Return the required anti-affinity terms of a pod spec.

    A term without a selector selects no pod and is omitted; an empty selector selects all.
    """
    if not spec.has("affinity"):
        return ()
    terms = spec.block("affinity").block("podAntiAffinity").blocks(REQUIRED)
    return tuple(
        AntiAffinity(
            key=term.text("topologyKey"),
            selector=_label_selector(term.block("labelSelector")),
            # An empty namespaceSelector selects all namespaces.
            is_scoped=any(term.data.get(key) not in (None, []) for key in _SCOPES),
        )
        for term in terms
        if term.data.get("labelSelector") is not None
    )


def _label_selector(selector: Fields) -> tuple[Requirement, ...]:
    exact = [Requirement(key, "In", (value,)) for key, value in sorted(selector.mapping("matchLabels").items())]
    return (*exact, *_term(selector))


def _term(term: Fields) -> Term:
    return tuple(
        Requirement(item.text("key"), item.text("operator"), tuple(item.texts("values")), kind == "matchFields")
        for kind in ("matchExpressions", "matchFields")
        for item in term.blocks(kind)
    )


def _is_sidecar(init: Fields) -> bool:
    return init.text("restartPolicy") == "Always"


def _container(container: Fields, status: Fields | None = None) -> Amounts:
    """Return the requests of one container; a limit without a request is the request.

    Source: KEP-1287. While a pod is resized, the larger of its spec and of what its node granted counts; a resize that
    the node finds infeasible does not.
    """
    amounts: Amounts = {}
    if container.has("resources"):
        resources = container.block("resources")
        amounts = amounts_in(resources.block("limits")) | amounts_in(resources.block("requests"))
    if status is None:
        return amounts
    granted: Amounts = {}
    for found in (*status.blocks("containerStatuses"), *status.blocks("initContainerStatuses")):
        if found.text("name") == container.text("name"):
            _raise(granted, amounts_in(found.block("resources").block("requests")))
            _raise(granted, amounts_in(found.block("allocatedResources")))
    if any(condition.text("reason") == "Infeasible" for condition in status.blocks("conditions")):
        return amounts | granted
    _raise(amounts, granted)
    return amounts


def amounts_in(fields: Fields) -> Amounts:
    """Return the quantities of a map of resources, as the scheduler counts them."""
    amounts: Amounts = {}
    for name in fields.data:
        try:
            amounts[name] = amount_of(name, fields.text(name))
        except ValueError as error:
            fields.fault(str(error), name)
    return amounts


def _raise(total: Amounts, level: Amounts) -> None:
    for name, amount in level.items():
        total[name] = max(total.get(name, 0), amount)
