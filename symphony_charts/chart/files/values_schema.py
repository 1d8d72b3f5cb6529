"""The table of values becomes ``values.schema.json``, against which merged values are checked as helm does it.

The schema is the same for every chart: draft 7, since helm 3 and 4 read it alike; patterns are RE2's; no reference
leaves the file. Source: helm/helm, pkg/chart/common/util/jsonschema.go (both engines refuse look-ahead and remote
references).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import NoReturn

import jsonschema_rs

from symphony_charts.chart.files.value_table import FIELDS, NAMES, REQUIRED
from symphony_charts.chart.render.values import Values
from symphony_charts.errors import Problem, SpecError
from symphony_charts.formats.names import DNS_LABEL, FILE_KEY, LABEL_NAME, OBJECT_NAME, SERVICE_NAME
from symphony_charts.formats.paths import nearest
from symphony_charts.formats.scalars import plain
from symphony_charts.kinds.gang import GANGS_OF_PODS
from symphony_charts.kinds.registry import KINDS
from symphony_charts.spec.checks.dijob import OPERATORS, TASK_TYPES

__all__ = ["check_schema", "schema_faults", "schema_text", "values_schema"]


def _ref(name: str) -> Values:
    return {"$ref": f"#/definitions/{name}"}


_SCALAR: Values = {"type": ["string", "number", "boolean"]}
_WHOLE = "^(?:0|[1-9][0-9]{0,9})$"
# So many pods a Job may have (Kubernetes, pkg/apis/batch/validation); helm would count to any number.
_COUNT = "^(?:0|[1-9][0-9]{0,4}|100000)$"
_PORT = "^(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])$"
_AMOUNT = r"^\+?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?$"
_RANGE = "^[0-9a-fA-F.:]+/[0-9]{1,3}$"
_OBJECT, _LABEL = OBJECT_NAME.pattern, LABEL_NAME.pattern
# What the API server takes is said here, so that helm refuses the rest before it has touched the cluster.
_TYPES: dict[str, Values] = {
    "bool": {"anyOf": [{"type": "boolean"}, {"enum": ["true", "false"]}]},
    "annotations": {"type": "object", "propertyNames": _ref("labelKey"), "additionalProperties": _SCALAR},
    "count": {"anyOf": [{"type": "integer", "minimum": 0, "maximum": 100_000}, {"type": "string", "pattern": _COUNT}]},
    "env": {
        "type": "object",
        "propertyNames": _ref("variable"),
        "additionalProperties": {"type": ["string", "number", "boolean", "object"]},
    },
    "fileKey": {"pattern": f"^{FILE_KEY.pattern}$"},
    "gateway": {"type": "string", "pattern": f"^(?:(?:{_OBJECT}/)?{_OBJECT})?$"},
    "host": {"type": "string", "pattern": rf"^(?:(?:\*\.)?{_OBJECT})?$", "maxLength": 253},
    "hostNames": {
        "type": "array",
        "items": {"type": "string", "pattern": f"^{SERVICE_NAME.pattern}$", "maxLength": 63},
        "uniqueItems": True,
    },
    # Argo CD's forceString and `--set-string` give digits.
    "image": {
        "anyOf": [
            {"type": "string"},
            {
                "type": "object",
                "properties": dict.fromkeys(("registry", "repository", "tag", "digest"), _SCALAR),
                "additionalProperties": False,
                "required": ["repository"],
            },
        ]
    },
    "integer": {
        "anyOf": [{"type": "integer", "minimum": 0, "maximum": 2**31 - 1}, {"type": "string", "pattern": _WHOLE}],
    },
    "labelKey": {"pattern": f"^(?:{_OBJECT}/)?{_LABEL}$", "maxLength": 317},
    "labels": {"type": "object", "propertyNames": _ref("labelKey"), "additionalProperties": _ref("labelValue")},
    "labelText": {"type": "string", "pattern": f"^(?:(?:{_OBJECT}/)?{_LABEL})?$", "maxLength": 317},
    "labelValue": {**_SCALAR, "pattern": f"^(?:{_LABEL})?$"},
    "member": {"pattern": f"^{DNS_LABEL.pattern}$", "maxLength": 63},
    "mode": {
        "anyOf": [{"type": "integer", "minimum": 0, "maximum": 0o777}, {"type": "string", "pattern": "^[0-9]{1,3}$"}],
    },
    "mountPath": {"type": "string", "pattern": "^[^:]+$"},
    "name": {"type": "string", "pattern": f"^(?:{_OBJECT})?$", "maxLength": 253},
    "nameStart": {"type": "string", "pattern": f"^(?:{DNS_LABEL.pattern})?$"},
    "object": {"type": "object"},
    "objects": {"type": "array", "items": {"type": "object"}},
    "path": {"type": "string", "pattern": "^(?:/.*)?$"},
    "port": {
        "anyOf": [
            {"type": "integer", "minimum": 1, "maximum": 65535},
            {"type": "string", "pattern": _PORT},
        ]
    },
    "pullSecrets": {
        "anyOf": [
            _SCALAR,
            {
                "type": "array",
                "items": {
                    "anyOf": [_SCALAR, {"type": "object", "properties": {"name": _ref("name")}, "required": ["name"]}]
                },
            },
        ]
    },
    "quantities": {"type": "object", "propertyNames": _ref("labelKey"), "additionalProperties": _ref("quantity")},
    "quantity": {"type": ["string", "number"], "pattern": _AMOUNT, "minimum": 0},
    "ranges": {
        "anyOf": [
            {"type": "string", "pattern": _RANGE},
            {"type": "array", "items": {"type": "string", "pattern": _RANGE}},
        ]
    },
    "scalar": _SCALAR,
    "signed": {"anyOf": [{"type": "integer"}, {"type": "string", "pattern": "^-?(?:0|[1-9][0-9]{0,9})$"}]},
    "strings": {"type": "object", "propertyNames": _ref("fileKey"), "additionalProperties": _ref("scalar")},
    "text": {"type": "string"},
    "texts": {"anyOf": [_SCALAR, {"type": "array", "items": _SCALAR}]},
    "variable": {"pattern": "^[-._a-zA-Z][-._a-zA-Z0-9]*$"},
    "words": {"type": "array", "items": {"type": "string"}},
}
_ENUMS = {
    "pathType": ["", "Prefix", "Exact", "ImplementationSpecific"],
    "externalTrafficPolicy": ["", "Cluster", "Local"],
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
    properties = root["properties"]
    # helm gives each dependency a map of its own; to the library with the templates nothing can be said.
    if isinstance(properties, dict):
        properties["global"] = {**_map(properties["global"]), "additionalProperties": True}
        properties["symph"] = {"properties": {"global": {"type": "object"}}, "additionalProperties": False}
    return {**root, "definitions": _TYPES}


@cache
def schema_text() -> bytes:
    """The file's content."""
    return (json.dumps(values_schema(), indent=2) + "\n").encode()


def _map(value: object) -> Values:
    return value if isinstance(value, dict) else {}


def _type_of(kind: str, name: str) -> Values:
    if kind == "text" and name in _ENUMS:
        return {"enum": _ENUMS[name]}
    return _ref(kind)


def _child(node: Values, step: str, path: str) -> Values:
    """The schema below `node` for one step of a path, made when it is not there."""
    node["type"] = "object"
    if path in REQUIRED:
        node["required"] = list(REQUIRED[path])
    if step == "*":
        if path in NAMES:
            node["propertyNames"] = _ref(NAMES[path])
        child = node.setdefault("additionalProperties", {})
    else:
        node["additionalProperties"] = False
        properties = node.setdefault("properties", {})
        child = properties.setdefault(step, {}) if isinstance(properties, dict) else {}
    return child if isinstance(child, dict) else {}


# What a value of each named type looks like, for people.
_WORDS = {
    "annotations": "a map of texts",
    "bool": "true or false",
    "count": "a whole number, 100000 at most",
    "fileKey": "letters, digits, dashes, dots and underscores",
    "gateway": "a name, or namespace/name",
    "host": "a host name",
    "hostNames": "a list of different names: lower-case letters, digits and dashes, a letter first",
    "image": "an image: a text, or a map with a repository",
    "integer": "a whole number",
    "labelKey": "the key of a label: name, or example.com/name",
    "labelText": "a name, or example.com/name",
    "labelValue": "the value of a label: 63 letters, digits, dashes, dots and underscores at most",
    "labels": "a map of texts",
    "member": "a name: lower-case letters, digits and dashes, 63 at most",
    "mode": "a mode from 0 to 511 (0777)",
    "mountPath": "a path without colons",
    "name": "a name: lower-case letters, digits, dashes and dots",
    "nameStart": "a name: lower-case letters, digits and dashes",
    "object": "a map",
    "objects": "a list of maps",
    "path": "a path that begins with a slash",
    "port": "a port from 1 to 65535",
    "pullSecrets": "a list of names of Secrets",
    "quantities": "a map of quantities",
    "quantity": "a quantity like 500m or 2Gi",
    "ranges": "a list of address ranges like 10.0.0.0/8",
    "scalar": "a text, number or boolean",
    "signed": "a whole number",
    "strings": "a map of texts",
    "text": "a text",
    "texts": "a text or a list of texts",
    "variable": "the name of a variable",
    "words": "a list of texts",
}


def check_schema(values: Mapping[str, object], schema: bytes | None = None) -> None:
    """Raise SpecError with every value that the chart's own schema refuses, `schema` being that of another version."""
    problems = schema_faults(values, schema)
    if problems:
        raise SpecError(problems)


def schema_faults(values: Mapping[str, object], schema: bytes | None = None) -> list[Problem]:
    """Every value that ``values.schema.json`` refuses, by its path, with the nearest name that there is.

    Raises SpecError where `schema` is none.
    """
    text = schema_text() if schema is None else schema
    validator = _validator(text)
    # The numbers of a file remember how they were written, and the validator knows plain ones alone.
    data = plain(values)
    if validator.is_valid(data):
        return []
    rules = json.loads(text)
    seen: dict[Problem, None] = {}
    for error in validator.iter_errors(data):
        steps = list(error.instance_path)
        told = list(_problems(rules, steps, values, error.message))
        # What is refused is told, also where nothing better is known than the validator's own words.
        seen |= dict.fromkeys(told or [Problem(what=error.message, path=".".join(map(str, steps)))])
    return list(seen)


@cache
def _validator(schema: bytes) -> jsonschema_rs.Draft7Validator:
    """What judges values. Raises SpecError where somebody has changed a chart's schema into none."""
    try:
        return jsonschema_rs.Draft7Validator(json.loads(schema), retriever=_fetch_nothing)
    except ValueError as error:
        what = f"the chart's values.schema.json is no JSON Schema: {str(error).partition(chr(10))[0]}"
        raise SpecError.one(
            what, "values.schema.json", "publish the chart again; helm takes none such either"
        ) from error


def _fetch_nothing(uri: str) -> NoReturn:
    """A schema of a repository may name any address and any file: whoever reads it asks for none of them."""
    raise ValueError(f"{uri} is not asked for")


def _problems(
    rules: dict[str, object], steps: Sequence[str | int], values: Mapping[str, object], message: str
) -> Iterator[Problem]:
    """The faults at one place: keys that are not known, keys that are missing, or a value of another type."""
    path, value = ".".join(map(str, steps)), _at(values, steps)
    rule, covered = _rule_at(rules, steps)
    if covered < len(steps):
        whole = ".".join(map(str, steps[:covered]))
        what = f"{json.dumps(value)} cannot stand in {_words(rule)}" if _words(rule) else message
        yield Problem(what=what, path=path, next=f"{whole} is {_words(rule)}" if _words(rule) else "")
        return
    names = _resolved(rules, rule).get("propertyNames")
    if isinstance(value, dict) and isinstance(names, dict):
        words = _words(names)
        refused = jsonschema_rs.Draft7Validator({**_resolved(rules, names)})
        for key in sorted(key for key in value if not refused.is_valid(key)):
            yield Problem(what=f"{json.dumps(key)} is not {words}", path=_join(path, key), next=f"take {words}")
    if isinstance(value, dict) and "properties" in rule:
        properties = rule["properties"] if isinstance(rule["properties"], dict) else {}
        for key in sorted(set(value) - set(properties)) if rule.get("additionalProperties") is False else ():
            near = nearest(str(key), properties)
            next_step = f'did you mean "{near}"?' if near else f"known here: {', '.join(sorted(properties)[:12])}"
            if not path and key == "processes":
                next_step = "what a process is told is a value of its group: groups.NAME.replicas"
            yield Problem(what=f'the chart has no value "{key}" here', path=_join(path, key), next=next_step)
        required = rule.get("required")
        for key in required if isinstance(required, list) else ():
            if key not in value and key == "containers" and steps[:-1] == ["groups"]:
                yield _no_group(str(steps[-1]), values["groups"], path)
            elif key not in value:
                what = f"{path} needs {_article(str(key))}" if path else f"the chart needs the value {key}"
                yield Problem(what=what, path=_join(path, key), next=f"set {_join(path, key)}")
    elif isinstance(rule.get("enum"), list):
        yield _not_one_of(value, [str(choice) for choice in _list(rule["enum"])], path)
    elif not isinstance(value, dict) or not isinstance(names, dict):
        wanted = _words(rule)
        what = f"{json.dumps(value)} is not {wanted}" if wanted else message
        yield Problem(what=what, path=path, next=f"set {path} to {wanted}" if wanted else "")


def _no_group(name: str, groups: object, path: str) -> Problem:
    """A group that somebody set something of, and that the chart has not."""
    others = [key for key, group in groups.items() if "containers" in group] if isinstance(groups, dict) else []
    near = nearest(name, others)
    next_step = f'did you mean "{near}"?' if near else f"its groups are {', '.join(others)}"
    return Problem(what=f'the chart has no group "{name}"', path=path, next=next_step)


def _words(rule: Mapping[str, object]) -> str:
    return _WORDS.get(str(rule.get("$ref", "")).rpartition("/")[2], "")


def _resolved(rules: Mapping[str, object], rule: Mapping[str, object]) -> dict[str, object]:
    """`rule`, or the named type that it refers to."""
    types, name = rules.get("definitions"), str(rule.get("$ref", "")).rpartition("/")[2]
    named = types.get(name) if isinstance(types, dict) else None
    return named if isinstance(named, dict) else {**rule}


def _not_one_of(value: object, choices: list[str], path: str) -> Problem:
    near = nearest(str(value), choices)
    rest = f"one of {', '.join(choice or json.dumps('') for choice in choices)}"
    hint = f'did you mean "{near}"? It is ' if near else ""
    return Problem(what=f"{json.dumps(value)} is no {path.rpartition('.')[2]}", path=path, next=hint + rest)


def _article(key: str) -> str:
    return f"{'an' if key[0] in 'aeiou' else 'a'} {key}"


def _join(path: str, key: object) -> str:
    return f"{path}.{key}" if path else str(key)


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _at(values: object, steps: Sequence[str | int]) -> object:
    for step in steps:
        values = values[step] if isinstance(values, dict) else _list(values)[int(step)]
    return values


def _rule_at(rules: dict[str, object], steps: Sequence[str | int]) -> tuple[dict[str, object], int]:
    """The schema of the value at a path, and how many of its steps lead there: fewer inside of a named type."""
    rule, covered = rules, 0
    for number, step in enumerate(steps, 1):
        resolved = _resolved(rules, rule)
        properties, others = resolved.get("properties"), resolved.get("additionalProperties")
        if isinstance(properties, dict) and step in properties:
            rule, covered = properties[str(step)], number
        elif isinstance(others, dict) and ("$ref" in others or "$ref" not in rule):
            rule, covered = others, number
    return rule, covered
