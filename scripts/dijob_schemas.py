"""Write the strict schemas of DIJobs for `symph validate`, one per shape that some operator versions read.

    python -m scripts.dijob_schemas

DI-orchestrator is in no package registry. Its few own fields are defined here; the pods in them are from the Kubernetes
version that its releases were built on, and come from kubernetes-validate 1.21.0 of PyPI. As in every definition that
embeds pods, metadata inside them has no fields: labels and annotations of pods are dropped.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from scripts.crd_schemas import OUT, metadata_schema, shared
from scripts.kubernetes_schemas import cleaned, compressed

PACKAGE = "kubernetes-validate==1.21.0"
_FILE = "src/kubernetes_validate/kubernetes-json-schema/v{}.0-local-strict/_definitions.json"
# The Kubernetes version of the pods in an API version.
_PODS = {"v1alpha1": "1.20", "v2alpha1": "1.21"}
_GROUP = "diengine.opendilab.org"
_CORE = "io.k8s.api.core.v1."

Schema = dict[str, object]

# Placeholders for Kubernetes' own definitions.
_TEMPLATE: Schema = {"$ref": "PodTemplateSpec"}
_VOLUMES: Schema = {"type": "array", "items": {"$ref": "Volume"}}

_TEXT: Schema = {"type": "string"}


def _whole(least: int | None = None) -> Schema:
    return {"type": "integer"} if least is None else {"type": "integer", "minimum": least}


def _one_of(*values: str) -> Schema:
    return {"type": "string", "enum": list(values)}


def _closed(required: tuple[str, ...] = (), **properties: Schema) -> Schema:
    found: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**found, "required": list(required)} if required else found


_PART = _closed(("template",), template=_TEMPLATE)
_ROLES: dict[str, Schema] = {
    "cleanPodPolicy": _TEXT,
    "collector": _PART,
    "coordinator": _PART,
    "group": _TEXT,
    "learner": _PART,
    "priorityClassName": _TEXT,
    "volumes": _VOLUMES,
}
_COMMON: dict[str, Schema] = {
    "cleanPodPolicy": _one_of("Running", "All", "None"),
    "preemptible": {"type": "boolean"},
    "priority": _one_of("normal", "high"),
}
_TASK = _closed(
    name=_TEXT,
    replicas=_whole(1),
    template=_TEMPLATE,
    type=_one_of("learner", "collector", "evaluator", "none"),
)
_TASKS: dict[str, Schema] = {**_COMMON, "backoffLimit": _whole(), "tasks": {"type": "array", "items": _TASK}}

# File name after the group: the specs' fields. Without a dialect, the shape of the newest operator of the version.
SHAPES: dict[str, Schema] = {
    "v1alpha1_AggregatorConfig": _closed(("aggregator",), aggregator=_PART),
    "v1alpha1_DIJob": _closed(("coordinator",), **_ROLES),
    "v1alpha1_DIJob@v0.1.0": _closed(("collector", "coordinator", "learner"), **_ROLES),
    "v2alpha1_DIJob": _closed(("tasks",), **_TASKS, volumes=_VOLUMES),
    "v2alpha1_DIJob@v1.1.0": _closed(("tasks",), **_TASKS, group=_TEXT),
    "v2alpha1_DIJob@v1.0.0": _closed(
        ("template",),
        **_COMMON,
        engineFields=_closed(parallelWorkers=_whole(1), topology=_one_of("star", "alone", "mesh")),
        group=_TEXT,
        maxReplicas=_whole(1),
        minReplicas=_whole(0),
        template=_TEMPLATE,
    ),
}


def shape_schema(name: str, pods: dict[str, Schema], metadata: Schema) -> Schema:
    """Return the complete schema of one of `SHAPES`; `pods` are the definitions by their short names."""
    version, _, kind = name.partition("@")[0].partition("_")
    whole = _closed(
        ("apiVersion", "kind", "metadata"),
        apiVersion={"const": f"{_GROUP}/{version}"},
        kind={"const": kind},
        metadata=metadata,
        spec=SHAPES[name],
    )
    made = _filled(whole, pods)
    assert isinstance(made, dict)  # noqa: S101 - a schema stays one
    return shared(made)


def pod_schemas(definitions: dict[str, Schema]) -> dict[str, Schema]:
    """Return the API's PodTemplateSpec and Volume, each as one schema; metadata in them has no fields."""

    def inlined(node: object) -> object:
        if isinstance(node, list):
            return [inlined(item) for item in node]
        if not isinstance(node, dict):
            return node
        reference = node.get("$ref")
        if isinstance(reference, str):
            name = reference.rpartition("/")[2]
            return _closed() if name.endswith(".ObjectMeta") else inlined(cleaned(definitions[name]))
        return {key: inlined(value) for key, value in node.items() if key != "format" and not key.startswith("x-")}

    return {name: _as_map(inlined(cleaned(definitions[_CORE + name]))) for name in ("PodTemplateSpec", "Volume")}


def _filled(node: object, pods: dict[str, Schema]) -> object:
    if isinstance(node, list):
        return [_filled(item, pods) for item in node]
    if not isinstance(node, dict):
        return node
    if node.get("$ref") in pods:
        return pods[str(node["$ref"])]
    return {key: _filled(value, pods) for key, value in node.items()}


def _as_map(value: object) -> Schema:
    assert isinstance(value, dict)  # noqa: S101 - a schema
    return value


def _pods() -> dict[str, dict[str, Schema]]:
    """Return the pod schemas of each API version, from the source distribution."""
    with tempfile.TemporaryDirectory() as folder:
        argv = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "-d", folder]
        subprocess.run([*argv, PACKAGE], check=True, timeout=300)
        (archive,) = Path(folder).iterdir()
        top = archive.name.removesuffix(".tar.gz")
        with tarfile.open(archive) as tar:
            return {version: pod_schemas(_read(tar, f"{top}/{_FILE.format(of)}")) for version, of in _PODS.items()}


def _read(tar: tarfile.TarFile, name: str) -> dict[str, Schema]:
    member = tar.extractfile(name)
    assert member is not None  # noqa: S101 - a file of the distribution
    definitions: dict[str, Schema] = json.loads(member.read())["definitions"]
    return definitions


def main() -> None:
    pods, metadata = _pods(), metadata_schema()
    for name in SHAPES:
        version = name.partition("_")[0]
        source = f"fields of DI-orchestrator; pods of Kubernetes {_PODS[version]} as in {PACKAGE} (Apache-2.0)"
        data = compressed({"source": source, "schema": shape_schema(name, pods[version], metadata)})
        (OUT / f"{_GROUP}_{name}.json.gz").write_bytes(data)
        print(f"{len(data):7d} {name}")


if __name__ == "__main__":
    main()
