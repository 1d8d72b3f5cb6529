"""Rules about workloads, images, commands and sizes: faults that break a run, a rollout or the start of a pod."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator

from symphony_charts.chart.lint.finding import Finding, Objects, containers_in, error, info, title, warning
from symphony_charts.formats.data import maps, sub
from symphony_charts.kinds.registry import KINDS, kind_for

# Linux refuses to start a program with a single argument or variable this long (MAX_ARG_STRLEN in binfmts.h).
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
    """Yield Jobs that never end or ask for nothing, and open load balancers."""
    for item in objects:
        spec = sub(item, "spec")
        if kind_for(item) is KINDS["jobs"]:
            yield from _job(item, spec)
        if item.get("kind") == "Service" and spec.get("type") == "LoadBalancer":
            yield from _load_balancer(item, spec)


def check_images(objects: Objects) -> Iterator[Finding]:
    """Yield images that no registry can serve, and those whose content may change."""
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
    """Yield commands whose first word, the name of a program, contains blanks."""
    for path, member in containers_in(objects):
        words = member.get("command")
        program = str(words[0]) if isinstance(words, list) and words else ""
        if any(letter.isspace() for letter in program.strip()):
            step = "write a list of words, as in `command: [python3, -V]`, or a line for a shell in `cmds:`"
            what = f'"{program}" is taken for the name of one program'
            yield warning("command-blanks", f"{path}.command", what, step)


def check_ports(objects: Objects) -> Iterator[Finding]:
    """Yield low ports of containers that drop the capability for them. Some container runtimes allow them all the same.

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
    """Yield texts that are too long for the start of a program, for an object, or for helm's release."""
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
    # helm keeps chart and manifest compressed and base64-encoded in one Secret.
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
