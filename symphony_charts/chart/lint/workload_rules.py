"""Rules for what a chart must not hold: what breaks a run, a re-run, a rollout or a pod's start."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator

from symphony_charts.chart.lint.finding import Finding, Objects, pod_of, title
from symphony_charts.formats.data import maps, sub
from symphony_charts.kinds.appwrapper import MAX_POD_SETS
from symphony_charts.kinds.registry import kind_for
from symphony_charts.spec.variable_names import is_ours

__all__ = ["MAX_ENV_BYTES", "check_commands", "check_images", "check_sizes", "check_workloads"]

# Linux refuses to start a program with a single argument or variable this long (MAX_ARG_STRLEN in binfmts.h).
MAX_ENV_BYTES = 131_072
_MAX_OBJECT_BYTES = 1024 * 1024
_MAX_WORKLOAD_NAME = 52
_HOOKS = ("helm.sh/hook", "argocd.argoproj.io/hook")
_INTERNAL = re.compile(r"internal|scheme", re.IGNORECASE)

# Source: distribution/reference, reference.go.
_DOMAIN = r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*(?::[0-9]+)?"
_PATH = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_IMAGE = re.compile(
    rf"(?:{_DOMAIN}/)?{_PATH}(?:/{_PATH})*(?::(?P<tag>\w[\w.-]{{0,127}}))?(?P<digest>@[a-z0-9]+:[0-9a-f]{{32,}})?",
    re.ASCII,
)


def check_workloads(objects: Objects) -> Iterator[Finding]:
    """Names too long, Jobs that would vanish or run for ever, load balancers that are open to the world."""
    for item in objects:
        kind, spec, name = kind_for(item), sub(item, "spec"), str(sub(item, "metadata").get("name"))
        is_workload = kind is not None and not kind.holds_groups
        if is_workload and len(name) > _MAX_WORKLOAD_NAME:
            yield _error("name-length", f"{title(item)}.metadata.name", f"{len(name)} characters; 52 is the most")
        if is_workload and kind and kind.is_finite:
            yield from _job(item, spec)
        sets = sum(len(maps(part, "podSets")) for part in maps(spec, "components"))
        if sets > MAX_POD_SETS:
            what = f"{sets} kinds of pods; {MAX_POD_SETS} are the most"
            yield _error("pod-sets", f"{title(item)}.spec.components", what, "put processes into fewer groups")
        if item.get("kind") == "Service" and spec.get("type") == "LoadBalancer":
            yield from _load_balancer(item, spec)
        hooks = sub(item, "metadata", "annotations")
        if is_workload and any(key.startswith(_HOOKS) for key in hooks):
            yield _error("hook", f"{title(item)}.metadata.annotations", "an experiment must not run as a hook")


def check_images(objects: Objects) -> Iterator[Finding]:
    """Images that no registry can serve, and those that may be another one tomorrow."""
    seen: set[str] = set()
    for path, member in _members(objects):
        image = str(member.get("image", ""))
        if image in seen:
            continue
        seen.add(image)
        match = _IMAGE.fullmatch(image)
        if match is None:
            yield Finding(
                rule="image-syntax",
                severity="warning",
                path=f"{path}.image",
                what=f'"{image}" is not how an image is written',
                next="write it as [registry/]name[:tag][@digest]",
            )
        elif match["digest"] is None and match["tag"] in (None, "latest", "head", "canary"):
            yield Finding(
                rule="image-latest",
                severity="warning",
                path=f"{path}.image",
                what=f'"{image}" may be another image tomorrow, and a new one starts no new run',
                next="give it a fixed tag or a digest",
            )


def check_commands(objects: Objects) -> Iterator[Finding]:
    """Commands whose first word, the name of a program, is a whole line."""
    for path, member in _members(objects):
        words = member.get("command")
        program = str(words[0]) if isinstance(words, list) and words else ""
        if any(letter.isspace() for letter in program.strip()):
            yield Finding(
                rule="command-blanks",
                severity="warning",
                path=f"{path}.command",
                what=f'"{program}" is looked for as one program of that name',
                next="write a list of words, as in `command: [python3, -V]`, or a line for a shell in `cmds:`",
            )


def check_sizes(objects: Objects, archive_bytes: int) -> Iterator[Finding]:
    """What does not fit into a program's environment, into an object, or into helm's release."""
    for path, member in _members(objects):
        texts = [(f"env.{entry.get('name')}", str(entry.get("value", ""))) for entry in maps(member, "env")]
        for key in ("command", "args"):
            words = member.get(key)
            texts += [
                (f"{key}[{index}]", str(word)) for index, word in enumerate(words if isinstance(words, list) else [])
            ]
        for where, text in texts:
            if len(text.encode()) >= MAX_ENV_BYTES:
                what = f"{len(text.encode())} bytes; no program starts with {MAX_ENV_BYTES} or more in one string"
                yield _error("env-size", f"{path}.{where}", what, "use a config file")
    for item in objects:
        if item.get("kind") in ("ConfigMap", "Secret"):
            data = {**sub(item, "data"), **sub(item, "binaryData")}
            size = sum(len(str(key).encode()) + len(str(value).encode()) for key, value in data.items())
            if size > _MAX_OBJECT_BYTES:
                yield _error(
                    "size", title(item), f"{size} bytes; Kubernetes takes 1 MiB", "mount large files from a volume"
                )
            for key, value in sub(item, "data").items():
                if len(str(value).encode()) >= MAX_ENV_BYTES and is_ours(key):
                    yield _error("env-size", f"{title(item)}.data.{key}", "too long for an environment variable")
    # helm keeps chart and manifest compressed and base64-encoded in one Secret.
    manifest = json.dumps(objects).encode()
    release = (archive_bytes + len(manifest)) * 4 // 3
    if release > _MAX_OBJECT_BYTES:
        release = (archive_bytes + len(zlib.compress(manifest))) * 4 // 3
    if release > _MAX_OBJECT_BYTES:
        yield _error("size", "release", f"about {release} bytes; helm keeps a release in a Secret of at most 1 MiB")


def _error(rule: str, path: str, what: str, next: str = "") -> Finding:
    return Finding(rule=rule, severity="error", path=path, what=what, next=next)


def _members(objects: Objects) -> Iterator[tuple[str, dict[str, object]]]:
    for item in objects:
        found = pod_of(item)
        if found is not None:
            for kind in ("initContainers", "containers"):
                for member in maps(sub(found[1], "spec"), kind):
                    yield f"{title(item)}.{found[0]}spec.{kind}.{member.get('name')}", member


def _job(item: dict[str, object], spec: dict[str, object]) -> Iterator[Finding]:
    if "ttlSecondsAfterFinished" in spec:
        path = f"{title(item)}.spec.ttlSecondsAfterFinished"
        yield _error("job-ttl", path, "the Job would vanish when done, and Argo CD would run it again", "take it out")
    pod = sub(spec, "template", "spec")
    if pod.get("restartPolicy") not in ("Never", "OnFailure"):
        yield _error("job-restart", f"{title(item)}.spec.template.spec.restartPolicy", "a Job takes Never or OnFailure")
    for member in maps(pod, "containers"):
        if not sub(member, "resources").get("requests") and not sub(member, "resources").get("limits"):
            yield Finding(
                rule="no-requests",
                severity="warning",
                path=f"{title(item)}.spec.template.spec.containers.{member.get('name')}.resources",
                what="asks for nothing, so the scheduler does not count it",
            )


def _load_balancer(item: dict[str, object], spec: dict[str, object]) -> Iterator[Finding]:
    annotations = sub(item, "metadata", "annotations")
    inside = any(_INTERNAL.search(f"{key}={value}") for key, value in annotations.items())
    if not spec.get("loadBalancerSourceRanges") and not inside:
        yield Finding(
            rule="load-balancer-open",
            severity="warning",
            path=f"{title(item)}.spec",
            what="a load balancer that the whole world may reach",
            next="set `expose.<service>.source_ranges`, an internal annotation, or another type",
        )
