"""How processes are reached: the twin of ``services.yaml``, ``ingresses.yaml`` and ``httproutes.yaml``."""

from __future__ import annotations

from collections.abc import Iterator

from symphony_charts.chart.render.model import LiveService, Model
from symphony_charts.chart.render.values import Values, integer, scalar, strings, texts
from symphony_charts.errors import SpecError
from symphony_charts.kinds.group import Group

__all__ = ["exposure_objects", "service_objects"]

# The ways in from outside that let in everybody.
_OPEN = ("NodePort", "Ingress", "Gateway")


def service_objects(model: Model, run: str) -> Iterator[dict[str, object]]:
    """The Service of each service, then those of pods' own names, then the headless ones that give replicas theirs."""
    for service in model.services.values():
        yield _service(model, service, run)
    for group in model.groups.values():
        for name in texts(group.values.get("names")):
            yield _named(model, group, name, run)
    with_services = {service.group for service in model.services.values()}
    for group in model.groups.values():
        dialled = group.name in with_services
        if not group.in_unit or (group.is_indexed and (dialled or group.is_node) and not group.selector_patterns):
            yield _headless(model, group, run)


def exposure_objects(model: Model) -> Iterator[dict[str, object]]:
    """Ingresses and Gateway routes of the services that are exposed so."""
    for service in model.services.values():
        if service.expose == "Ingress":
            yield _ingress(model, service)
    for service in model.services.values():
        if service.expose == "Gateway":
            yield _http_route(model, service)


def _service(model: Model, service: LiveService, run: str) -> dict[str, object]:
    kind = service.expose if service.expose in ("LoadBalancer", "NodePort") else "ClusterIP"
    labels = {**model.labels, "symph.dev/group": service.group, "symph.dev/service": service.name}
    metadata: Values = {"name": service.host, "labels": labels}
    if service.expose in ("LoadBalancer", "NodePort", "ClusterIP") and service.values.get("annotations"):
        metadata["annotations"] = strings(service.values["annotations"])
    port = _port(service)
    spec: Values = {
        "type": kind,
        "selector": _run_selector(model, model.groups[service.group], run),
        "ports": [port],
    }
    if kind != "ClusterIP" and "nodePort" in service.values:
        port["nodePort"] = integer(service.values["nodePort"], None, f"services.{service.name}.nodePort")
    if kind != "ClusterIP" and service.values.get("externalTrafficPolicy"):
        spec["externalTrafficPolicy"] = service.values["externalTrafficPolicy"]
    if kind == "LoadBalancer" and service.values.get("loadBalancerClass"):
        spec["loadBalancerClass"] = service.values["loadBalancerClass"]
    if service.is_bound:
        # Processes that wait for each other would deadlock if they had to be ready before they are found.
        spec["publishNotReadyAddresses"] = True
    ranges = texts(service.values.get("sourceRanges"))
    if ranges and service.expose in _OPEN:
        path = f"services.{service.name}.sourceRanges"
        raise SpecError.one(f"{path}: a LoadBalancer alone keeps others out, no {service.expose}", path)
    if kind == "LoadBalancer" and ranges:
        spec["loadBalancerSourceRanges"] = ranges
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def _named(model: Model, group: Group, name: str, run: str) -> dict[str, object]:
    """The Service called `name`: with the ports of the group's services, or for any port where it has none."""
    ports = [_port(service) for service in model.services.values() if service.group == group.name]
    selector = _run_selector(model, group, run)
    spec: Values = {"selector": selector, "publishNotReadyAddresses": True}
    spec |= {"type": "ClusterIP", "ports": ports} if ports else {"clusterIP": "None"}
    labels = {**model.labels, "symph.dev/group": group.name}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "labels": labels}, "spec": spec}


def _port(service: LiveService) -> Values:
    return {"name": service.name, "port": service.port, "targetPort": service.port, "protocol": "TCP"}


def _headless(model: Model, group: Group, run: str) -> dict[str, object]:
    labels = {**model.labels, "symph.dev/group": group.name}
    selector = _run_selector(model, group, run)
    spec = {"clusterIP": "None", "selector": selector, "publishNotReadyAddresses": True}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": group.pods, "labels": labels}, "spec": spec}


def _run_selector(model: Model, group: Group, run: str) -> dict[str, str]:
    if group.selector_patterns:
        return group.selector(run)
    selector = {**model.identity, "symph.dev/group": group.name}
    return selector if group.keep else {**selector, "symph.dev/run": run}


def _metadata(model: Model, service: LiveService) -> Values:
    metadata: Values = {"name": service.host, "labels": model.labels}
    if service.values.get("annotations"):
        metadata["annotations"] = strings(service.values["annotations"])
    return metadata


def _ingress(model: Model, service: LiveService) -> dict[str, object]:
    backend = {"service": {"name": service.host, "port": {"number": service.port}}}
    path, kind = service.values.get("path") or "/", service.values.get("pathType") or "Prefix"
    rule: Values = {"http": {"paths": [{"path": path, "pathType": kind, "backend": backend}]}}
    if service.values.get("host"):
        rule["host"] = service.values["host"]
    spec: Values = {"rules": [rule]}
    if service.values.get("className"):
        spec["ingressClassName"] = service.values["className"]
    if service.values.get("tls"):
        spec["tls"] = service.values["tls"]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": _metadata(model, service),
        "spec": spec,
    }


def _http_route(model: Model, service: LiveService) -> dict[str, object]:
    gateway = scalar(service.values.get("gateway") or "")
    path = f"services.{service.name}.gateway"
    if not gateway:
        raise SpecError.one(f"{path} names the Gateway, as name or namespace/name", path)
    parent = {"name": gateway.rpartition("/")[2]}
    if "/" in gateway:
        parent["namespace"] = gateway.partition("/")[0]
    route: Values = {"backendRefs": [{"name": service.host, "port": service.port}]}
    if service.values.get("path"):
        route["matches"] = [{"path": {"type": "PathPrefix", "value": service.values["path"]}}]
    spec: Values = {"parentRefs": [parent], "rules": [route]}
    if service.values.get("host"):
        spec["hostnames"] = [service.values["host"]]
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": _metadata(model, service),
        "spec": spec,
    }
