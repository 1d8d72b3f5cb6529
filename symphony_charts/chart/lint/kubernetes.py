"""Check objects against strict schemas of a Kubernetes version and of other projects' kinds."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import jsonschema_rs

from symphony_charts.chart.lint.finding import Finding, Objects, containers_of, error, pod_of, title
from symphony_charts.errors import SpecError
from symphony_charts.formats.data import maps, sub
from symphony_charts.system.package_data import table, tables

VERSIONS = tuple(f"1.{minor}" for minor in range(29, 38))
DEFAULT_VERSION = "1.34"

_SCHEMAS = "chart/lint/schemas"
# Kubernetes' own API groups, all of which have schemas.
_CORE_GROUPS = frozenset(
    {"", "apps", "batch", "networking.k8s.io", "policy", "rbac.authorization.k8s.io", "scheduling.k8s.io"}
)


def version_for(objects: Objects) -> str:
    """Return the version to check `objects` against: the default, or the oldest later one that has all kinds."""
    kinds = {f"{item.get('apiVersion')}/{item.get('kind')}" for item in objects}
    built_in = {kind for kind in kinds if kind.rpartition("/")[0].rpartition("/")[0] in _CORE_GROUPS}
    later = VERSIONS[VERSIONS.index(DEFAULT_VERSION) :]
    return next((version for version in later if built_in <= set(_read(f"v{version}")["kinds"])), DEFAULT_VERSION)


def check_schemas(objects: Objects, version: str = DEFAULT_VERSION) -> Iterator[Finding]:
    """Yield each field that Kubernetes `version` (such as ``1.34``) or another project would refuse.

    A missing kind is reported once. If versions of an operator disagree on a kind, one must accept the object.
    """
    if version not in VERSIONS:
        raise SpecError.one(f'no schemas of Kubernetes "{version}"', next=f"use one of {', '.join(VERSIONS)}")
    unknown: set[str] = set()
    for item in objects:
        kind = f"{item.get('apiVersion')}/{item.get('kind')}"
        validators = _validators(version, kind)
        if not validators:
            if kind not in unknown:
                unknown.add(kind)
                yield _unknown(item, kind, version)
            continue
        for fault in min(([*validator.iter_errors(item)] for validator in validators), key=len):
            yield error("schema", ".".join([title(item), *map(str, fault.instance_path)]), fault.message)
        yield from _duplicates(item)


def _unknown(item: dict[str, object], kind: str, version: str) -> Finding:
    api, _, name = kind.rpartition("/")
    what = f"{title(item)}: no such kind in Kubernetes {version}: {api} {name}"
    having = [other for other in VERSIONS if kind in _read(f"v{other}")["kinds"]]
    step = f"Kubernetes {' and '.join(having)} has it: --kube-version {having[0]}" if having else ""
    return error("schema", title(item), what, step)


def _duplicates(item: dict[str, object]) -> Iterator[Finding]:
    """Yield duplicate keys in lists that are merged by key, which server-side apply refuses."""
    found = pod_of(item)
    if found is None:
        return
    prefix, pod = found
    spec = sub(pod, "spec")
    members = list(containers_of(spec))
    lists = [
        ("spec.containers", [member for _, member in members], "name"),
        ("spec.volumes", maps(spec, "volumes"), "name"),
    ]
    for where, member in members:
        for field, key in (("env", "name"), ("volumeMounts", "mountPath"), ("ports", "containerPort")):
            lists.append((f"{where}.{field}", maps(member, field), key))
    for where, entries, key in lists:
        names = [entry.get(key) for entry in entries]
        for name in sorted({str(name) for name in names if names.count(name) > 1}):
            yield error("duplicate", f"{title(item)}.{prefix}{where}", f"{key} {name} is here more than once")


@cache
def _read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(gzip.decompress(table(f"{_SCHEMAS}/{name}.json.gz")))
    return content


@cache
def _validators(version: str, kind: str) -> tuple[jsonschema_rs.Draft7Validator, ...]:
    """Return the compiled schemas of a kind. Compiling takes milliseconds, so compile used kinds only."""
    schemas = _read(f"v{version}")
    name = schemas["kinds"].get(kind)
    if isinstance(name, str):
        found: list[dict[str, object]] = [{"$ref": f"#/definitions/{name}", "definitions": schemas["definitions"]}]
    else:
        found = list(_foreign(kind))
    return tuple(jsonschema_rs.Draft7Validator(schema, validate_formats=False) for schema in found)


def _foreign(kind: str) -> Iterator[dict[str, object]]:
    stem = kind.replace("/", "_")
    for name in (file.removesuffix(".json.gz") for file in tables(_SCHEMAS)):
        if name.partition("@")[0] == stem:
            yield _read(name)["schema"]
