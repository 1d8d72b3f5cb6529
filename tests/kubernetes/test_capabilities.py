"""The DIJob version of a CRD."""

from __future__ import annotations

import pytest

from symphony_charts.kubernetes.capabilities import dijob_shape


def definition(*fields: str, is_served: bool = True) -> dict[str, object]:
    schema = {"properties": {"spec": {"properties": {name: {"type": "object"} for name in fields}}}}
    version = {"name": "v2alpha1", "served": is_served, "schema": {"openAPIV3Schema": schema}}
    return {"spec": {"versions": [version]}}


@pytest.mark.parametrize(
    ("fields", "shape"),
    [
        (("tasks", "volumes", "backoffLimit"), "v1.1"),
        (("tasks", "backoffLimit"), "v1.1.0"),
        (("template", "engineFields"), "v1.0"),
        (("coordinator", "collector", "learner", "volumes"), "v0"),
    ],
)
def test_a_field_that_only_one_version_has_tells_the_shapes_apart(fields: tuple[str, ...], shape: str) -> None:
    assert dijob_shape(definition(*fields)) == shape


def test_a_version_that_is_not_served_counts_for_nothing() -> None:
    assert dijob_shape(definition("tasks", "volumes", is_served=False)) == "v0"


def test_a_definition_without_fields_is_taken_for_the_newest() -> None:
    assert dijob_shape(definition()) == "v1.1"
