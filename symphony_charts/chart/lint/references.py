"""Rules about references between objects: ConfigMaps, keys, volumes, selectors and ports."""

from __future__ import annotations

from collections.abc import Iterator

from symphony_charts.chart.lint.finding import Finding, Objects, error, info, pod_of, title
from symphony_charts.formats.data import maps, sub


def check_references(objects: Objects) -> Iterator[Finding]:
    """Yield a finding for each reference to something that is missing, or must exist in the namespace."""
    names = {(str(item.get("kind")), str(sub(item, "metadata").get("name"))) for item in objects}
    pods = [(item, *found) for item in objects if (found := pod_of(item)) is not None]
    for item, path, pod in pods:
        yield from _pod_references(f"{title(item)}.{path}", sub(pod, "spec"), names, objects)
    templates = [(sub(pod, "metadata", "labels"), sub(pod, "spec")) for item, _, pod in pods if item["kind"] != "Pod"]
    for item in objects:
        if item.get("kind") == "Service":
            yield from _service(item, templates)


def _pod_references(
    path: str, spec: dict[str, object], names: set[tuple[str, str]], objects: Objects
) -> Iterator[Finding]:
    volumes = {str(volume.get("name")) for volume in maps(spec, "volumes")}
    for kind, name, keys, where in _mentioned(spec):
        place = f"{path}{where}"
        if (kind, name) in names:
            yield from _keys(objects, kind, name, keys, place)
        else:
            what = f"{kind} {name} must exist in the namespace" + (f", with {', '.join(keys)}" if keys else "")
            yield info("needs", place, what)
    for member in [*maps(spec, "initContainers"), *maps(spec, "containers")]:
        for mount in maps(member, "volumeMounts"):
            if str(mount.get("name")) not in volumes:
                what = f"mounts volume {mount.get('name')}, which the pod does not have"
                yield error("reference", f"{path}spec.containers.{member.get('name')}", what)


def _mentioned(spec: dict[str, object]) -> Iterator[tuple[str, str, list[str], str]]:
    """Yield kind, name and keys of each ConfigMap and Secret that a pod needs, and the path of the reference."""
    for volume in maps(spec, "volumes"):
        for kind, source, field in (("ConfigMap", "configMap", "name"), ("Secret", "secret", "secretName")):
            source_ = sub(volume, source)
            if source_ and not source_.get("optional"):
                keys = [str(entry.get("key")) for entry in maps(source_, "items")]
                yield kind, str(source_.get(field)), keys, f"spec.volumes.{volume.get('name')}"
    for member in [*maps(spec, "initContainers"), *maps(spec, "containers")]:
        where = f"spec.containers.{member.get('name')}"
        for entry in maps(member, "envFrom"):
            for kind, source in (("ConfigMap", "configMapRef"), ("Secret", "secretRef")):
                if sub(entry, source) and not sub(entry, source).get("optional"):
                    yield kind, str(sub(entry, source).get("name")), [], f"{where}.envFrom"
        for entry in maps(member, "env"):
            for kind, source in (("ConfigMap", "configMapKeyRef"), ("Secret", "secretKeyRef")):
                source_ = sub(entry, "valueFrom", source)
                if source_ and not source_.get("optional"):
                    yield kind, str(source_.get("name")), [str(source_.get("key"))], f"{where}.env.{entry.get('name')}"
    for entry in maps(spec, "imagePullSecrets"):
        yield "Secret", str(entry.get("name")), [], "spec.imagePullSecrets"


def _keys(objects: Objects, kind: str, name: str, keys: list[str], place: str) -> Iterator[Finding]:
    held: set[str] = set()
    for item in objects:
        if (item.get("kind"), sub(item, "metadata").get("name")) == (kind, name):
            held |= set(sub(item, "data")) | set(sub(item, "binaryData")) | set(sub(item, "stringData"))
    for key in keys:
        if key not in held:
            yield error("reference", place, f"{kind} {name} has no key {key}")


def _service(
    item: dict[str, object], templates: list[tuple[dict[str, object], dict[str, object]]]
) -> Iterator[Finding]:
    selector = sub(item, "spec", "selector").items()
    if not selector:
        # Its endpoints are made by hand.
        return
    fitting = [spec for labels, spec in templates if selector <= labels.items()]
    if not fitting:
        yield error("selector", f"{title(item)}.spec.selector", "no pod of the chart has these labels")
        return
    # Objects of users may hold anything here, also what no set can hold.
    open_ports = [
        port.get(key)
        for spec in fitting
        for member in [*maps(spec, "initContainers"), *maps(spec, "containers")]
        for port in maps(member, "ports")
        for key in ("containerPort", "name")
        if key in port
    ]
    for port in maps(sub(item, "spec"), "ports"):
        if port.get("targetPort") not in open_ports:
            what = f"port {port.get('targetPort')} is not one on which its pods listen"
            yield error("target-port", f"{title(item)}.spec.ports", what)
