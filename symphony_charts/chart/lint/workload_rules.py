"""Rules about objects: workloads, images, commands, sizes, resources, and references between objects."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Mapping

from symphony_charts.chart.lint.finding import (
    Finding,
    Objects,
    containers_in,
    containers_of,
    error,
    info,
    pod_of,
    pods_in,
    title,
    warning,
)
from symphony_charts.formats.data import maps, sub
from symphony_charts.formats.quantity import MIB, is_quantity, quantity
from symphony_charts.kinds.registry import KINDS, kind_for

# Linux refuses to start a program if one argument or variable is this long (MAX_ARG_STRLEN in binfmts.h).
MAX_ENV_BYTES = 131_072
_MAX_OBJECT_BYTES = 1024 * 1024
_UNPRIVILEGED = 1024
_INTERNAL = re.compile(r"internal|scheme", re.IGNORECASE)

# Source: distribution/reference, reference.go.
_DOMAIN = r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*(?::[0-9]+)?"
_PATH = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_IMAGE = re.compile(
    rf"(?:{_DOMAIN}/)?{_PATH}(?:/{_PATH})*(?::(?P<tag>\w[\w.-]{{0,127}}))?(?P<digest>@[a-z0-9]+:[0-9a-f]{{32,}})?",
    re.ASCII,
)


def check_workloads(objects: Objects) -> Iterator[Finding]:
    """Yield Jobs with an invalid restart policy, containers without requests, and load balancers open to everyone."""
    for item in objects:
        spec = sub(item, "spec")
        if kind_for(item) is KINDS["jobs"]:
            yield from _job(item, spec)
        if item.get("kind") == "Service" and spec.get("type") == "LoadBalancer":
            yield from _load_balancer(item, spec)


def check_images(objects: Objects) -> Iterator[Finding]:
    """Yield invalid image names, and images whose content may change."""
    seen: set[str] = set()
    for path, member in containers_in(objects):
        image = str(member.get("image", ""))
        if image in seen:
            continue
        seen.add(image)
        match = _IMAGE.fullmatch(image)
        if match is None:
            what = f'"{image}" is not a valid image name'
            yield warning("image-syntax", f"{path}.image", what, "write it as [registry/]name[:tag][@digest]")
        elif match["digest"] is None and match["tag"] in (None, "latest", "head", "canary"):
            what = f'"{image}" may become another image, and that starts no new run'
            yield warning("image-latest", f"{path}.image", what, "give it a fixed tag or a digest")


def check_commands(objects: Objects) -> Iterator[Finding]:
    """Yield commands whose first word, the program name, contains blanks."""
    for path, member in containers_in(objects):
        words = member.get("command")
        program = str(words[0]) if isinstance(words, list) and words else ""
        if any(letter.isspace() for letter in program.strip()):
            step = "write a list of words, as in `command: [python3, -V]`, or a line for a shell in `cmds:`"
            what = f'"{program}" is taken for the name of one program'
            yield warning("command-blanks", f"{path}.command", what, step)


def check_ports(objects: Objects) -> Iterator[Finding]:
    """Yield low ports of containers that drop the capability for them. Some container runtimes allow them anyway.

    Source: containerd, docs/cri/config.md, `enable_unprivileged_ports`, which is true since 2.0.
    """
    for path, member in containers_in(objects):
        capabilities = sub(member, "securityContext", "capabilities")
        if "ALL" not in str(capabilities.get("drop")) or "NET_BIND_SERVICE" in str(capabilities.get("add")):
            continue
        for port in maps(member, "ports"):
            number = port.get("containerPort")
            if isinstance(number, int) and number < _UNPRIVILEGED:
                what = f"without the capability NET_BIND_SERVICE, some nodes let no process listen on port {number}"
                step = f"use a port from {_UNPRIVILEGED}, or add the capability in `container_overlay`"
                yield info("low-port", f"{path}.ports", what, step)


def check_sizes(objects: Objects, archive_bytes: int) -> Iterator[Finding]:
    """Yield texts that are too long for a program start, an object, or Helm's release Secret."""
    for path, member in containers_in(objects):
        texts = [(f"env.{entry.get('name')}", str(entry.get("value", ""))) for entry in maps(member, "env")]
        for key in ("command", "args"):
            words = member.get(key)
            texts += [
                (f"{key}[{index}]", str(word)) for index, word in enumerate(words if isinstance(words, list) else [])
            ]
        for where, text in texts:
            if len(text.encode()) >= MAX_ENV_BYTES:
                what = f"{len(text.encode())} bytes; no program starts with {MAX_ENV_BYTES} or more in one string"
                yield error("env-size", f"{path}.{where}", what, "use a config file")
    for item in objects:
        if item.get("kind") in ("ConfigMap", "Secret"):
            data = {**sub(item, "data"), **sub(item, "binaryData")}
            size = sum(len(str(key).encode()) + len(str(value).encode()) for key, value in data.items())
            if size > _MAX_OBJECT_BYTES:
                what = f"{size} bytes; Kubernetes takes 1 MiB"
                yield error("size", title(item), what, "mount large files from a volume")
    # Helm stores chart and manifest in one Secret, compressed and base64-encoded.
    manifest = json.dumps(objects).encode()
    release = (archive_bytes + len(manifest)) * 4 // 3
    if release > _MAX_OBJECT_BYTES:
        release = (archive_bytes + len(zlib.compress(manifest))) * 4 // 3
    if release > _MAX_OBJECT_BYTES:
        yield error("size", "release", f"about {release} bytes; helm keeps a release in a Secret of at most 1 MiB")


def _job(item: dict[str, object], spec: dict[str, object]) -> Iterator[Finding]:
    pod = sub(spec, "template", "spec")
    if pod.get("restartPolicy") not in ("Never", "OnFailure"):
        yield error("job-restart", f"{title(item)}.spec.template.spec.restartPolicy", "a Job takes Never or OnFailure")
    for member in maps(pod, "containers"):
        if not sub(member, "resources").get("requests") and not sub(member, "resources").get("limits"):
            path = f"{title(item)}.spec.template.spec.containers.{member.get('name')}.resources"
            yield warning("no-requests", path, "asks for nothing, so the scheduler does not count it")


def _load_balancer(item: dict[str, object], spec: dict[str, object]) -> Iterator[Finding]:
    annotations = sub(item, "metadata", "annotations")
    inside = any(_INTERNAL.search(f"{key}={value}") for key, value in annotations.items())
    if not spec.get("loadBalancerSourceRanges") and not inside:
        step = "set `expose.<service>.source_ranges`, an internal annotation, or another type"
        yield warning("load-balancer-open", f"{title(item)}.spec", "everyone can reach this load balancer", step)


def check_references(objects: Objects) -> Iterator[Finding]:
    """Yield a finding for each reference to a missing object, or to one that must exist in the namespace."""
    held: dict[tuple[str, str], set[str]] = {}
    for item in objects:
        keys = {key for field in ("data", "binaryData", "stringData") for key in sub(item, field)}
        held.setdefault((str(item.get("kind")), str(sub(item, "metadata").get("name"))), set()).update(keys)
    pods = [(item, *found) for item in objects if (found := pod_of(item)) is not None]
    for item, path, pod in pods:
        yield from _pod_references(f"{title(item)}.{path}", sub(pod, "spec"), held)
    templates = [(sub(pod, "metadata", "labels"), sub(pod, "spec")) for item, _, pod in pods if item["kind"] != "Pod"]
    for item in objects:
        if item.get("kind") == "Service":
            yield from _service(item, templates)


def _pod_references(path: str, spec: dict[str, object], held: Mapping[tuple[str, str], set[str]]) -> Iterator[Finding]:
    """Yield faulty references of a pod; `held` has the keys of each object by its kind and name."""
    volumes = {str(volume.get("name")) for volume in maps(spec, "volumes")}
    for kind, name, keys, where in _mentioned(spec):
        place = f"{path}{where}"
        if (kind, name) in held:
            absent = [key for key in keys if key not in held[kind, name]]
            yield from (error("reference", place, f"{kind} {name} has no key {key}") for key in absent)
        else:
            what = f"{kind} {name} must exist in the namespace" + (f", with {', '.join(keys)}" if keys else "")
            yield info("needs", place, what)
    for where, member in containers_of(spec):
        for mount in maps(member, "volumeMounts"):
            if str(mount.get("name")) not in volumes:
                what = f"mounts volume {mount.get('name')}, which the pod does not have"
                yield error("reference", f"{path}{where}", what)


def _mentioned(spec: dict[str, object]) -> Iterator[tuple[str, str, list[str], str]]:
    """Yield kind, name and keys of each ConfigMap and Secret that a pod needs, and the path of the reference."""
    for volume in maps(spec, "volumes"):
        for kind, source, field in (("ConfigMap", "configMap", "name"), ("Secret", "secret", "secretName")):
            source_ = sub(volume, source)
            if source_ and not source_.get("optional"):
                keys = [str(entry.get("key")) for entry in maps(source_, "items")]
                yield kind, str(source_.get(field)), keys, f"spec.volumes.{volume.get('name')}"
    for where, member in containers_of(spec):
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


def _service(
    item: dict[str, object], templates: list[tuple[dict[str, object], dict[str, object]]]
) -> Iterator[Finding]:
    selector = sub(item, "spec", "selector").items()
    if not selector:
        # A Service without a selector has manual endpoints.
        return
    fitting = [spec for labels, spec in templates if selector <= labels.items()]
    if not fitting:
        yield error("selector", f"{title(item)}.spec.selector", "no pod of the chart has these labels")
        return
    # A list, not a set: users' objects may hold unhashable values here.
    open_ports = [
        port.get(key)
        for spec in fitting
        for _, member in containers_of(spec)
        for port in maps(member, "ports")
        for key in ("containerPort", "name")
        if key in port
    ]
    for port in maps(sub(item, "spec"), "ports"):
        if port.get("targetPort") not in open_ports:
            what = f"port {port.get('targetPort')} is not one on which its pods listen"
            yield error("target-port", f"{title(item)}.spec.ports", what)


def check_resources(objects: Objects) -> Iterator[Finding]:
    """Yield requests above limits, invalid quantities, and memory volumes that can fill a container's limit.

    Sources: Kubernetes, pkg/apis/core/validation, ValidateResourceRequirements; Kubernetes docs, "Volumes", emptyDir:
    a file in memory counts against the memory limit of the container that wrote it.
    """
    for where, pod in pods_in(objects):
        spec = sub(pod, "spec")
        sizes = _sizes_in_memory(spec)
        for place, member in containers_of(spec):
            path = f"{where}{place}.resources"
            yield from _resources(sub(member, "resources"), path)
            yield from _in_memory(member, sizes, path)
        yield from _resources(sub(spec, "resources"), f"{where}spec.resources")


def _resources(resources: dict[str, object], path: str) -> Iterator[Finding]:
    requests, limits = sub(resources, "requests"), sub(resources, "limits")
    for field, amounts in (("requests", requests), ("limits", limits)):
        for name, amount in sorted(amounts.items()):
            if not is_quantity(str(amount)):
                yield error("quantity", f"{path}.{field}.{name}", f'"{amount}" is not a quantity of Kubernetes')
            elif name == "memory" and 0 < quantity(str(amount)) < MIB:
                what = f"{amount} of memory are bytes, too few for any program"
                step = f'add the unit, as in "{amount}Gi"' if str(amount).isdecimal() else "ask for more"
                yield warning("little-memory", f"{path}.{field}.{name}", what, step)
    for name in sorted(set(requests) & set(limits)):
        asked, allowed = str(requests[name]), str(limits[name])
        if is_quantity(asked) and is_quantity(allowed) and quantity(asked) > quantity(allowed):
            what = f"the request {asked} of {name} is above the limit {allowed}"
            yield error("request-above-limit", f"{path}.requests.{name}", what, "ask for less, or raise the limit")


def _sizes_in_memory(spec: dict[str, object]) -> dict[str, str]:
    sources = {str(volume.get("name")): sub(volume, "emptyDir") for volume in maps(spec, "volumes")}
    return {
        name: str(source["sizeLimit"])
        for name, source in sources.items()
        if source.get("medium") == "Memory" and is_quantity(str(source.get("sizeLimit")))
    }


def _in_memory(member: dict[str, object], sizes: Mapping[str, str], path: str) -> Iterator[Finding]:
    written = {str(mount.get("name")) for mount in maps(member, "volumeMounts") if not mount.get("readOnly")}
    names = [name for name in sizes if name in written]
    limit = str(sub(member, "resources", "limits").get("memory"))
    if names and is_quantity(limit) and sum(quantity(sizes[name]) for name in names) >= quantity(limit):
        filled = " and ".join(f"{name} ({sizes[name]})" for name in names)
        what = f"files in {filled} count against the memory limit of {limit} and leave nothing for the program"
        step = "raise the limit above the size of its volumes in memory, or make them smaller"
        yield warning("memory-volumes", f"{path}.limits.memory", what, step)
