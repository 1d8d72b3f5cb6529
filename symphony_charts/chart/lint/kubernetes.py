"""Objects against the strict schemas of a Kubernetes version."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from symphony_charts.chart.lint.finding import Finding, Objects, maps, pod_of, sub, title
from symphony_charts.errors import SpecError

if TYPE_CHECKING:
    import jsonschema_rs

__all__ = ["DEFAULT_VERSION", "VERSIONS", "check_schemas"]

VERSIONS = tuple(f"1.{minor}" for minor in range(29, 38))
DEFAULT_VERSION = "1.34"

# Kinds of other projects, whose schemas are not carried.
_FOREIGN = frozenset(
    {
        ("gateway.networking.k8s.io/v1", "HTTPRoute"),
        ("bitnami.com/v1alpha1", "SealedSecret"),
        ("external-secrets.io/v1", "ExternalSecret"),
        ("jobset.x-k8s.io/v1alpha2", "JobSet"),
    }
)


def check_schemas(objects: Objects, version: str = DEFAULT_VERSION) -> Iterator[Finding]:
    """A finding for every field that Kubernetes `version` (such as ``1.34``) would refuse."""
    if version not in VERSIONS:
        raise SpecError.one(f'no schemas of Kubernetes "{version}"', next=f"use one of {', '.join(VERSIONS)}")
    for item in objects:
        kind = (str(item.get("apiVersion")), str(item.get("kind")))
        if kind in _FOREIGN:
            continue
        validator = _validator(version, "/".join(kind))
        if validator is None:
            what = f"{title(item)}: no such kind in Kubernetes {version}: {kind[0]} {kind[1]}"
            yield Finding(rule="schema", severity="error", path=title(item), what=what)
            continue
        for error in validator.iter_errors(item):
            path = ".".join(str(step) for step in error.instance_path)
            yield Finding(rule="schema", severity="error", path=f"{title(item)}.{path}", what=error.message)
        yield from _duplicates(item)


def _duplicates(item: dict[str, object]) -> Iterator[Finding]:
    """Entries of one name where a name is a key, which server-side apply refuses."""
    found = pod_of(item)
    if found is None:
        return
    prefix, pod = found
    spec = sub(pod, "spec")
    members = [*maps(spec, "initContainers"), *maps(spec, "containers")]
    lists = [("containers", members, "name"), ("volumes", maps(spec, "volumes"), "name")]
    for member in members:
        lists.append((f"containers.{member.get('name')}.env", maps(member, "env"), "name"))
        lists.append((f"containers.{member.get('name')}.volumeMounts", maps(member, "volumeMounts"), "mountPath"))
        lists.append((f"containers.{member.get('name')}.ports", maps(member, "ports"), "containerPort"))
    for where, entries, key in lists:
        names = [entry.get(key) for entry in entries]
        for name in sorted({str(name) for name in names if names.count(name) > 1}):
            path = f"{title(item)}.{prefix}spec.{where}"
            yield Finding(
                rule="duplicate", severity="error", path=path, what=f"{key} {name} stands here more than once"
            )


@cache
def _schemas(version: str) -> dict[str, dict[str, object]]:
    file = resources.files("symphony_charts.chart.lint") / "schemas" / f"v{version}.json.gz"
    loaded: dict[str, dict[str, object]] = json.loads(gzip.decompress(file.read_bytes()))
    return loaded


@cache
def _validator(version: str, kind: str) -> jsonschema_rs.Draft7Validator | None:
    """The compiled schema of a kind; only what it refers to is handed over, since compiling takes milliseconds."""
    import jsonschema_rs

    schemas = _schemas(version)
    name = schemas["kinds"].get(kind)
    if not isinstance(name, str):
        return None
    return jsonschema_rs.Draft7Validator(
        {"$ref": f"#/definitions/{name}", "definitions": schemas["definitions"]}, validate_formats=False
    )
