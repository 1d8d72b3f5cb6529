"""Write the strict Kubernetes schemas of `symph validate`, from the kubernetes-validate distribution.

Per minor version one compressed file: the kinds that a chart may contain and their references, without prose; unknown
fields are refused, and so is null, which our charts never emit. The file contains source and version.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

OUT = Path(__file__).resolve().parent.parent / "symphony_charts" / "chart" / "lint" / "schemas"
MINORS = range(29, 38)
KINDS = {
    "v1": (
        "ConfigMap",
        "Namespace",
        "PersistentVolumeClaim",
        "Pod",
        "ResourceQuota",
        "Secret",
        "Service",
        "ServiceAccount",
    ),
    "apps/v1": ("Deployment", "StatefulSet"),
    "batch/v1": ("CronJob", "Job"),
    "networking.k8s.io/v1": ("Ingress", "NetworkPolicy"),
    "policy/v1": ("PodDisruptionBudget",),
    "rbac.authorization.k8s.io/v1": ("Role", "RoleBinding"),
}
# Kinds that exist only in some versions; included where they exist.
PASSING = {
    "scheduling.k8s.io/v1alpha2": ("PodGroup", "Workload"),
    "scheduling.k8s.io/v1beta1": ("PodGroup", "Workload"),
}
_DROPPED = ("description", "x-kubernetes-group-version-kind", "$schema", "x-kubernetes-union")


def schemas_of(definitions: dict[str, object], source: str) -> dict[str, object]:
    """Return the schemas of one version: `kinds` maps ``apiVersion/kind`` to a name in `definitions`."""
    kinds = {}
    for version, names in (*KINDS.items(), *PASSING.items()):
        for kind in names:
            name = _find(definitions, version, kind)
            if name:
                kinds[f"{version}/{kind}"] = name
            elif version in KINDS:
                raise SystemExit(f"no schema of {version} {kind}")
    needed = dict.fromkeys(kinds.values())
    pending = list(needed)
    while pending:
        for name in _references(definitions[pending.pop()]):
            if name not in needed:
                needed[name] = None
                pending.append(name)
    return {
        "source": source,
        "kinds": kinds,
        "definitions": {name: cleaned(definitions[name]) for name in sorted(needed)},
    }


def _find(definitions: dict[str, object], version: str, kind: str) -> str | None:
    group, _, number = version.rpartition("/")
    for name, schema in definitions.items():
        said = schema.get("x-kubernetes-group-version-kind", []) if isinstance(schema, dict) else []
        if {"group": group, "kind": kind, "version": number} in said:
            return name
    return None


def _references(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"].rpartition("/")[2]
        for value in node.values():
            yield from _references(value)
    elif isinstance(node, list):
        for value in node:
            yield from _references(value)


def cleaned(node: object) -> object:
    """Return a schema without prose and null, with references to definitions in the same file."""
    if isinstance(node, list):
        return [cleaned(value) for value in node]
    if not isinstance(node, dict):
        return node
    reference, types, enum = node.get("$ref"), node.get("type"), node.get("enum")
    if isinstance(reference, str):
        return {"$ref": f"#/definitions/{reference.rpartition('/')[2]}"}
    dropped = {key for key in _DROPPED if isinstance(node.get(key), str | list)}
    result = {key: cleaned(value) for key, value in node.items() if key not in dropped}
    if isinstance(types, list):
        named = [name for name in types if name != "null"]
        result["type"] = named[0] if len(named) == 1 else named
    if isinstance(enum, list):
        result["enum"] = [value for value in enum if value is not None]
    return result


def compressed(data: object) -> bytes:
    """Return JSON, gzipped to the same bytes every time."""
    text = json.dumps(data, separators=(",", ":"), sort_keys=True).encode()
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0, filename="") as file:
        file.write(text)
    return buffer.getvalue()


def main(minors: Iterable[int] = MINORS) -> None:
    distribution = metadata.distribution("kubernetes-validate")
    root = Path(str(distribution.locate_file("kubernetes_validate/kubernetes-json-schema")))
    source = f"kubernetes-validate {distribution.version} (Apache-2.0), made from the API's OpenAPI documents"
    for minor in minors:
        file = root / f"v1.{minor}.0-local-strict" / "_definitions.json"
        definitions = json.loads(file.read_text())["$defs"]
        (OUT / f"v1.{minor}.json.gz").write_bytes(compressed(schemas_of(definitions, source)))


if __name__ == "__main__":
    main()
