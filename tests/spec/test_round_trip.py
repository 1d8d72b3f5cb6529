"""An experiment survives a round trip through text; the order of keys is the order of declaration and nothing more."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
from hypothesis import given, settings

from symphony_charts.formats.yaml_read import load
from symphony_charts.spec.builder.experiment import ExperimentSpec
from symphony_charts.spec.data import from_data, to_data, to_json, to_yaml
from symphony_charts.spec.json_schema import json_schema
from tests.chart.strategies import experiments

SCHEMA = jsonschema_rs.Draft202012Validator(json_schema())


@given(experiments())
@settings(max_examples=100, deadline=None)
def test_text_and_data_and_builders_give_the_experiment_back_in_its_order(data: dict[str, Any]) -> None:
    experiment = from_data(data)
    again = from_data(load(to_yaml(experiment)))
    assert again == experiment
    assert (list(again.processes), list(again.groups)) == (list(data["processes"]), list(data["groups"]))
    assert from_data(json.loads(to_json(experiment))) == experiment
    assert from_data(to_data(experiment)) == experiment
    assert ExperimentSpec.from_experiment(experiment).finish() == experiment
    SCHEMA.validate(data)
    SCHEMA.validate(to_data(experiment))


@given(experiments())
@settings(max_examples=50, deadline=None)
def test_the_order_of_other_keys_changes_nothing(data: dict[str, Any]) -> None:
    declared = [key for key in data if key in ("processes", "groups")]
    shuffled = {key: data[key] for key in reversed(data) if key not in declared}
    for part in declared:
        shuffled[part] = {name: dict(reversed(fields.items())) for name, fields in data[part].items()}
    assert to_yaml(from_data(shuffled)) == to_yaml(from_data(data))


def test_lone_processes_that_are_written_before_the_groups_are_declared_first() -> None:
    run = {"command": ["x"]}
    parts = {"processes": {"a": run}, "groups": {"g": {"processes": {"a": run}}}}
    assert from_data({"name": "e", **parts}).order == ["a", "g/a"]
    assert from_data({"name": "e", **dict(reversed(parts.items()))}).order == []
    assert from_data(to_data(from_data({"name": "e", **parts}))).order == ["a", "g/a"]
