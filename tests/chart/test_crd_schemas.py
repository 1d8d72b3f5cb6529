"""Conversion of a CRD into a schema that refuses the fields the API server would drop, and accepts all others."""

from __future__ import annotations

import gzip
import json
from importlib import resources

import jsonschema_rs
import pytest

from scripts import dijob_schemas
from scripts.crd_schemas import SOURCES, schema_of

_CONTAINER = {
    "type": "object",
    "description": "prose " * 40,
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "pattern": "^[a-z]+$"},
        "port": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        "weight": {"type": "integer", "minimum": 0, "exclusiveMinimum": True},
        "note": {"type": "string", "nullable": True, "default": "x"},
    },
}
_SPEC = {
    "type": "object",
    "properties": {
        "one": _CONTAINER,
        "many": {"type": "array", "items": _CONTAINER},
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "empty": {"type": "object"},
        "free": {"type": "object", "additionalProperties": {"type": "string"}},
        "choice": {
            "type": "object",
            "properties": {"a": {}, "b": {}},
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
        },
    },
}
_DEFINITION = {
    "spec": {
        "group": "example.org",
        "names": {"kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": _SPEC, "status": {"type": "object"}},
                        "required": ["spec"],
                    }
                },
            }
        ],
    }
}
SCHEMA = schema_of(_DEFINITION, "v1", {"type": "object", "required": ["name"]})


def takes(**spec: object) -> bool:
    """Return True if the schema accepts a Widget with this spec."""
    item = {"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec}
    return jsonschema_rs.Draft7Validator(SCHEMA).is_valid(item)


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"one": {"name": "a", "port": 1, "weight": 1, "note": None}},
        {"many": [{"name": "a", "port": "http"}]},
        {"open": {"what": {"ever": 1}}},
        {"free": {"any": "text"}},
        {"choice": {"a": 1}},
    ],
)
def test_what_the_server_keeps_is_taken(spec: dict[str, object]) -> None:
    assert takes(**spec)


@pytest.mark.parametrize(
    "spec",
    [
        {"other": 1},
        {"one": {"name": "a", "prot": 1}},
        {"many": [{}]},
        {"many": [{"name": "A"}]},
        {"one": {"name": "a", "weight": 0}},
        {"one": {"name": None}},
        {"empty": {"dropped": 1}},
        {"free": {"any": 1}},
        {"choice": {"a": 1, "b": 1}},
    ],
)
def test_what_the_server_drops_or_refuses_is_refused(spec: dict[str, object]) -> None:
    assert not takes(**spec)


@pytest.mark.parametrize("change", [{"status": {}}, {"kind": "Gadget"}, {"metadata": {}}, {"extra": 1}])
def test_the_top_of_an_object_is_that_of_its_kind(change: dict[str, object]) -> None:
    item = {"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {}, **change}
    assert not jsonschema_rs.Draft7Validator(SCHEMA).is_valid(item)


def test_what_stands_in_two_places_is_kept_once_and_without_prose() -> None:
    text = json.dumps(SCHEMA)
    assert text.count('"^[a-z]+$"') == 1
    assert "prose" not in text


def test_every_carried_schema_says_where_it_comes_from() -> None:
    folder = resources.files("symphony_charts.chart.lint") / "schemas"
    files = {file.name: file for file in folder.iterdir() if "_" in file.name}
    said = {name: json.loads(gzip.decompress(file.read_bytes()))["source"] for name, file in files.items()}
    dijobs = {f"diengine.opendilab.org_{name}.json.gz" for name in dijob_schemas.SHAPES}
    assert dijobs == {name for name, source in said.items() if dijob_schemas.PACKAGE in source}
    assert len(files) == len(SOURCES) + len(dijobs)
    assert {source.partition(" ")[0] for name, source in said.items() if name not in dijobs} == {
        source.origin for source in SOURCES
    }
    assert sum(len(file.read_bytes()) for file in files.values()) < 80_000


# A made-up API, in the format of kubernetes-validate.
_API: dict[str, dict[str, object]] = {
    "io.k8s.api.core.v1.PodTemplateSpec": {
        "description": "prose",
        "properties": {
            "metadata": {"$ref": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"},
            "spec": {"$ref": "#/definitions/io.k8s.api.core.v1.PodSpec"},
        },
        "additionalProperties": False,
        "type": ["object", "null"],
    },
    "io.k8s.api.core.v1.PodSpec": {
        "properties": {"volumes": {"type": "array", "items": {"$ref": "#/definitions/io.k8s.api.core.v1.Volume"}}},
        "additionalProperties": False,
        "type": "object",
    },
    "io.k8s.api.core.v1.Volume": {
        "properties": {"name": {"type": "string", "format": "dns"}},
        "additionalProperties": False,
        "type": "object",
    },
}


@pytest.mark.parametrize(
    ("task", "is_taken"),
    [
        ({"name": "a", "template": {"spec": {"volumes": [{"name": "v"}]}}}, True),
        ({"type": "evaluator", "replicas": 1}, True),
        ({"template": {"metadata": {}}}, True),
        ({"template": {"metadata": {"labels": {"a": "b"}}}}, False),
        ({"template": {"spec": {"hostnames": []}}}, False),
        ({"replicas": 0}, False),
        ({"type": "boss"}, False),
        ({"command": []}, False),
    ],
)
def test_a_dijob_is_its_own_fields_around_pods_without_metadata(task: dict[str, object], is_taken: bool) -> None:
    pods = dijob_schemas.pod_schemas(_API)
    schema = dijob_schemas.shape_schema("v2alpha1_DIJob@v1.1.0", pods, {"type": "object"})
    kind = {"apiVersion": "diengine.opendilab.org/v2alpha1", "kind": "DIJob", "metadata": {}}
    validator = jsonschema_rs.Draft7Validator(schema)
    assert validator.is_valid({**kind, "spec": {"tasks": [task]}}) is is_taken
    assert not validator.is_valid({**kind, "spec": {"tasks": [task], "volumes": []}})
    assert "prose" not in json.dumps(schema)
