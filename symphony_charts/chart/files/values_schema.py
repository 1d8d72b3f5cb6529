"""values.schema.json: the same for every chart, made from the table of values.

Draft 7, since helm 3 and 4 read it alike; patterns are RE2's; no reference leaves the file.
Source: helm/helm, pkg/chart/common/util/jsonschema.go (both engines refuse look-ahead and remote references).
"""

from __future__ import annotations

import json
from functools import cache

from symphony_charts.chart.files.value_table import FIELDS, REQUIRED
from symphony_charts.chart.render.values import Values
from symphony_charts.kinds.gang import GANGS_OF_PODS
from symphony_charts.kinds.registry import KINDS
from symphony_charts.spec.checks.dijob import OPERATORS, TASK_TYPES

__all__ = ["schema_text", "values_schema"]

_SCALAR: Values = {"type": ["string", "number", "boolean"]}
_TYPES: dict[str, Values] = {
    "bool": {"anyOf": [{"type": "boolean"}, {"enum": ["true", "false"]}]},
    "env": {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean", "object"]}},
    # Argo CD's forceString and `--set-string` give digits.
    "integer": {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": "^(?:0|[1-9][0-9]{0,9})$"}]},
    "object": {"type": "object"},
    "objects": {"type": "array", "items": {"type": "object"}},
    "port": {
        "anyOf": [
            {"type": "integer", "minimum": 1, "maximum": 65535},
            {"type": "string", "pattern": "^(?:[1-9][0-9]{0,4})$"},
        ]
    },
    "quantities": {"type": "object", "additionalProperties": {"type": ["string", "number"]}},
    "scalar": _SCALAR,
    "signed": {"anyOf": [{"type": "integer"}, {"type": "string", "pattern": "^-?(?:0|[1-9][0-9]{0,9})$"}]},
    "strings": {"type": "object", "additionalProperties": _SCALAR},
    "text": {"type": "string"},
    "texts": {"anyOf": [_SCALAR, {"type": "array", "items": _SCALAR}]},
    "words": {"type": "array", "items": {"type": "string"}},
}
_ENUMS = {
    "lifecycle": ["finite", "service"],
    "restartPolicy": ["Never", "OnFailure"],
    "imagePullPolicy": ["", "Always", "IfNotPresent", "Never"],
    "expose": ["", "LoadBalancer", "NodePort", "ClusterIP", "Ingress", "Gateway"],
    "gang": ["none", "kueue", *GANGS_OF_PODS],
    "gangScope": ["experiment", "group"],
    "operator": list(OPERATORS),
    "cleanPodPolicy": ["Running", "All", "None"],
    "tasks": list(TASK_TYPES),
    "topology": ["star", "alone", "mesh"],
    "compat": ["", "di-engine"],
    "gangVersion": ["v1alpha2", "v1beta1"],
    "concurrency": ["Forbid", "Replace"],
    "kind": list(KINDS),
    "source": ["existing", "sealed", "external"],
    "version": ["v1beta2", "v1beta1"],
    "scope": ["strict", "namespace-wide", "cluster-wide"],
}


def values_schema() -> Values:
    """The schema: closed maps but for those keyed by names, `extra` and `global`."""
    root: Values = {"$schema": "http://json-schema.org/draft-07/schema#", "title": "Values of an experiment's chart"}
    for field in FIELDS:
        steps = field.path.split(".")
        node = root
        for index, step in enumerate(steps):
            node = _child(node, step, ".".join(steps[:index]))
        node |= {"description": field.meaning, **_type_of(field.kind, steps[-2] if steps[-1] == "*" else steps[-1])}
    return {**root, "definitions": _TYPES}


@cache
def schema_text() -> bytes:
    """The file's content."""
    return (json.dumps(values_schema(), indent=2) + "\n").encode()


def _type_of(kind: str, name: str) -> Values:
    if kind == "text" and name in _ENUMS:
        return {"enum": _ENUMS[name]}
    return {"$ref": f"#/definitions/{kind}"}


def _child(node: Values, step: str, path: str) -> Values:
    """The schema below `node` for one step of a path, made when it is not there."""
    node["type"] = "object"
    if path in REQUIRED:
        node["required"] = list(REQUIRED[path])
    if step == "*":
        found = node.setdefault("additionalProperties", {})
    else:
        node["additionalProperties"] = False
        properties = node.setdefault("properties", {})
        found = properties.setdefault(step, {}) if isinstance(properties, dict) else {}
    return found if isinstance(found, dict) else {}
