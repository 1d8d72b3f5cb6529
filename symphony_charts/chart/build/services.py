"""Services, Ingresses, Gateway routes and network policies as trees."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from symphony_charts.chart.build.data import annotated, metadata
from symphony_charts.chart.build.draft import Draft, Group, dials_of
from symphony_charts.chart.build.pods import runs, selector
from symphony_charts.chart.tree import All, Block, Equals, Include, Let, Merged, Not, Text, Tree, Value, When, optional
from symphony_charts.spec.model import ExposeSettings
from symphony_charts.spec.pods import Service

_TESTS = Merged(Include("selectorLabels"), {"app.kubernetes.io/component": "test"})
_CLOSED = ".Values.networkPolicy.egress"


def services_of(draft: Draft, group: Group) -> list[Tree]:
    """Return the Services of `group`: one per service, one per additional host name, and the one for pod host names."""
    made = [_service(draft, group, service) for service in draft.services_of(group)]
    made += [_named(draft, group, name) for name in group.pod.settings.names]
    if draft.needs_host_names(group):
        spec = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": selector(draft, group)}
        made.append(_object(metadata(Text(group.pods_service), group=f'"{group.name}"'), spec))
    return made


def routes(draft: Draft) -> list[Tree]:
    """Return the Ingress or HTTPRoute of each service that the experiment exposes that way."""
    made: list[Tree] = []
    for name, service in draft.services.items():
        make = {"Ingress": _ingress, "Gateway": _http_route}.get(exposure(draft, service).type)
        if service.is_exposed and make:
            route = make(draft, service, f".Values.services.{name}")
            made.append(When(runs(draft.groups[service.listener.pod]), route))
    return made


def exposure(draft: Draft, service: Service) -> ExposeSettings:
    return draft.experiment.expose.get(service.name, ExposeSettings())


def _port(service: Service) -> Value:
    return Value(f".Values.services.{service.name}.port")


def _service_port(draft: Draft, group: Group, service: Service) -> dict[str, Tree]:
    name = draft.port_names(group)[service.name]
    return {"name": name, "port": _port(service), "targetPort": name}


def _object(meta: Tree, spec: Tree) -> Tree:
    return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}


def _service(draft: Draft, group: Group, service: Service) -> Tree:
    if service.is_exposed and exposure(draft, service).type not in ("Ingress", "Gateway"):
        return Let("$service", f".Values.services.{service.name}", _exposed(draft, group, service))
    spec: dict[str, Tree] = {"selector": selector(draft, group), "ports": [_service_port(draft, group, service)]}
    if not service.is_exposed and not _has_ready_probe(group, service):
        # Processes that wait for each other would deadlock if DNS listed only ready pods.
        spec["publishNotReadyAddresses"] = True
    return _object(metadata(draft.name(service.name), **_labels(group, service)), spec)


def _labels(group: Group, service: Service) -> dict[str, str]:
    return {"group": f'"{group.name}"', "service": f'"{service.name}"'}


def _exposed(draft: Draft, group: Group, service: Service) -> Tree:
    """Return a Service whose type is a value; the scope holds its values as ``$service``."""
    balanced = Equals("$service.type", "LoadBalancer")
    outside = Not(Equals("$service.type", "ClusterIP"))
    traffic, balancer = "$service.externalTrafficPolicy", "$service.loadBalancerClass"
    port = {
        **_service_port(draft, group, service),
        "port": Value("$service.port"),
        "nodePort": When(All((outside, "$service.nodePort")), Value("$service.nodePort")),
    }
    spec = {
        "type": Value("$service.type"),
        "selector": selector(draft, group),
        "ports": [port],
        "externalTrafficPolicy": When(All((outside, traffic)), Value(traffic)),
        "loadBalancerClass": When(All((balanced, balancer)), Value(balancer, is_text=True)),
        "loadBalancerSourceRanges": When(balanced, Block("$service.sourceRanges", via="strings")),
    }
    return _object(annotated(draft.name(service.name), "$service.annotations", **_labels(group, service)), spec)


def _has_ready_probe(group: Group, service: Service) -> bool:
    ready = group.pod.processes[service.listener.process].ready
    return ready is not None and ready != "none"


def _named(draft: Draft, group: Group, name: str) -> Tree:
    services = draft.services_of(group)
    spec: dict[str, Tree] = {"selector": selector(draft, group)}
    if services:
        spec["ports"] = [_service_port(draft, group, service) for service in services]
    else:
        spec["clusterIP"] = "None"
    if not any(_has_ready_probe(group, service) for service in services):
        spec["publishNotReadyAddresses"] = True
    return _object(metadata(Text(name), group=f'"{group.name}"'), spec)


def _ingress(draft: Draft, service: Service, path: str) -> Tree:
    backend = {"service": {"name": draft.name(service.name), "port": {"number": _port(service)}}}
    rule: dict[str, Tree] = {
        "http": {"paths": [{"path": Value(f"{path}.path", is_text=True), "pathType": "Prefix", "backend": backend}]},
        "host": optional(f"{path}.host"),
    }
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": annotated(draft.name(service.name), f"{path}.annotations"),
        "spec": {
            "ingressClassName": optional(f"{path}.className"),
            "rules": [rule],
            "tls": Block(f"{path}.tls"),
        },
    }


def _http_route(draft: Draft, service: Service, path: str) -> Tree:
    rule = {
        "matches": [{"path": {"type": "PathPrefix", "value": Value(f"{path}.path", is_text=True)}}],
        "backendRefs": [{"name": draft.name(service.name), "port": _port(service)}],
    }
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": annotated(draft.name(service.name), f"{path}.annotations"),
        "spec": {
            "parentRefs": [
                {
                    "name": Value(f"{path}.gateway.name", is_text=True),
                    "namespace": optional(f"{path}.gateway.namespace"),
                }
            ],
            "hostnames": When(f"{path}.host", [Value(f"{path}.host", is_text=True)]),
            "rules": [rule],
        },
    }


def exposure_values(settings: ExposeSettings) -> dict[str, object]:
    """Return the values of an exposed service besides its port: the fields that its type needs."""
    annotations = dict(settings.annotations)
    if settings.type == "Ingress":
        own: dict[str, object] = {
            "className": settings.class_name or "",
            "host": settings.host or "",
            "path": "/",
            "tls": [],
        }
    elif settings.type == "Gateway":
        namespace, _, name = (settings.gateway or "").rpartition("/")
        own = {"gateway": {"name": name, "namespace": namespace}, "host": settings.host or "", "path": "/"}
    else:
        own = {
            "type": settings.type,
            "nodePort": 0,
            "externalTrafficPolicy": "",
            "loadBalancerClass": settings.class_name or "",
            "sourceRanges": list(settings.source_ranges),
        }
    return {**own, "annotations": annotations}


def network_policies(draft: Draft) -> Tree:
    """Return the policies of a release: one that denies other traffic, and one per group with services for its callers.

    Closed egress stays inside the release: the ingress rules define the allowed callers.
    """
    base = _policy(
        metadata(Text("{$fullname}")),
        {
            "podSelector": {"matchLabels": Include("selectorLabels")},
            "policyTypes": ["Ingress", When(_CLOSED, "Egress")],
            "egress": When(_CLOSED, _egress(draft)),
        },
    )
    groups: list[Tree] = [
        When(runs(group), _group_policy(draft, group))
        for group in draft.groups.values()
        if draft.services_of(group) or group in draft.peers.nodes_of(draft) or draft.is_foreign(group)
    ]
    return When(".Values.networkPolicy.enabled", [base, *groups])


def _egress(draft: Draft) -> Tree:
    names = {"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]}
    inside = [_pods(Include("selectorLabels")), *_foreign_pods(draft, draft.groups.values())]
    return Merged([names, {"to": inside}], Block(".Values.networkPolicy.egressRules"))


def _policy(meta: Tree, spec: dict[str, Tree]) -> Tree:
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": meta, "spec": spec}


def _group_policy(draft: Draft, group: Group) -> Tree:
    """Return the policy that allows callers of a group's services, with one rule per set of callers."""
    by_callers: dict[tuple[str, ...] | None, list[Tree]] = {}
    for service in draft.services_of(group):
        callers = tuple(sorted(other.name for other in draft.groups.values() if service.name in dials_of(other)))
        by_callers.setdefault(None if service.is_exposed else callers, []).append({"port": _port(service)})
    rules = [
        {"ports": ports} if callers is None else {"from": [_pods(_TESTS), *_callers(draft, callers)], "ports": ports}
        for callers, ports in by_callers.items()
    ]
    # DI-engine listens on ports that are not in the spec.
    peers = [*draft.peers.nodes_of(draft), *filter(draft.is_foreign, draft.groups.values())]
    if group in peers:
        rules.append({"from": _callers(draft, [peer.name for peer in peers])})
    spec: dict[str, Tree] = {
        "podSelector": {"matchLabels": selector(draft, group, with_run=False)},
        "policyTypes": ["Ingress"],
        "ingress": rules,
    }
    if draft.is_foreign(group):
        # The release policy does not select these pods.
        spec["policyTypes"] = ["Ingress", When(_CLOSED, "Egress")]
        spec["egress"] = When(_CLOSED, _egress(draft))
    return _policy(metadata(Text(f"{{$fullname}}-{group.part}"), group=f'"{group.name}"'), spec)


def _callers(draft: Draft, names: Sequence[str]) -> list[Tree]:
    labelled = [name for name in names if not draft.is_foreign(draft.groups[name])]
    callers = _foreign_pods(draft, [draft.groups[name] for name in names])
    if labelled:
        expression = {"key": "symph.dev/group", "operator": "In", "values": labelled}
        selected = {"matchLabels": Include("selectorLabels"), "matchExpressions": [expression]}
        callers.insert(0, {"podSelector": selected})
    return callers


def _foreign_pods(draft: Draft, groups: Iterable[Group]) -> list[Tree]:
    return [_pods(selector(draft, group)) for group in groups if draft.is_foreign(group)]


def _pods(labels: Tree) -> Tree:
    return {"podSelector": {"matchLabels": labels}}
