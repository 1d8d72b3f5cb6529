"""Kind `dijob` under each operator: its CRD knows every field, and helm prints the evaluator's objects."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from symphony_charts.chart.build.chart import BuiltChart
from symphony_charts.spec.data import from_data
from tests.chart.draws import overrides
from tests.chart.harness import assert_same, built_of, chart_of, experiment_of, native_objects
from tests.chart.judge import Instance, Judge
from tests.chart.strategies import HOSTILE
from tests.tools import HELM_VERSIONS

OPERATORS = ("v1.1", "v1.1.0", "v1.0", "v0")
RUN = {"command": ["x"]}
PROCESSES = {
    "learner": {**RUN, "binds": {"ps": 7000}, "gpus": 1, "deadline": 60, "retries": 2},
    "collector": {**RUN, "replicas": 2, "connects": "ps", "binds": "data", "env": {"REF": "$(SYMPH_DATA_HOSTS)"}},
    "board": {**RUN, "lifecycle": "service", "exposes": "web", "replicas": 2, "connects": "data"},
}
SAID: dict[str, object] = {"clean_pod_policy": "None", "group": "g", "priority": "high"}
TASKS = {"processes": PROCESSES, "security": {"network_policy": True}, "configs": {"a": {"text": "x"}}}
ROLES = {
    "processes": {
        "coordinator": {**RUN, "binds": {"coordinator": 22273}, "priority_class": "high"},
        "collector": {**RUN, "lifecycle": "service", "replicas": 2, "binds": {"collector": 22270}},
        "aggregator": {**RUN, "lifecycle": "service"},
        "board": {**RUN, "lifecycle": "service", "connects": "coordinator"},
    }
}
ONE = {
    "processes": {"worker": {**RUN, "replicas": 3, "binds": "peers"}, "board": PROCESSES["board"] | {"connects": []}}
}
OF_OPERATOR: dict[str, tuple[dict[str, object], dict[str, object]]] = {
    "v1.1": ({**TASKS}, {**SAID, "tasks": {"learner": "none"}}),
    "v1.1.0": ({**TASKS, "security": {}}, SAID),
    "v1.0": ({**ONE}, {**SAID, "topology": "mesh", "parallel_workers": 2, "max_replicas": 4}),
    "v0": ({**ROLES}, {"clean_pod_policy": "All", "group": "g"}),
}
SCHEMAS = {
    "v1.1": "v2alpha1_DIJob",
    "v1.1.0": "v2alpha1_DIJob@v1.1.0",
    "v1.0": "v2alpha1_DIJob@v1.0.0",
    "v0": "v1alpha1_DIJob",
}


def definition(name: str) -> jsonschema_rs.Draft7Validator:
    """Return the strict schema of one version."""
    file = resources.files("symphony_charts.chart.lint") / "schemas" / f"diengine.opendilab.org_{name}.json.gz"
    schema = json.loads(gzip.decompress(file.read_bytes()))["schema"]
    return jsonschema_rs.Draft7Validator(schema, validate_formats=False)


def chart_for(operator: str) -> BuiltChart:
    said, dijob = OF_OPERATOR[operator]
    data = {
        "name": "exp",
        "image": "a:1",
        **said,
        "workload": {"kind": "dijob", "dijob": {**dijob, "operator": operator}},
    }
    return built_of(from_data(data, for_cluster=True))


def chart_with_ranks() -> BuiltChart:
    """Return the chart of an experiment whose processes get their ranks without the operator."""
    return built_of(from_data({"name": "exp", "image": "a:1", **TASKS, "compat": "di-engine"}, for_cluster=True))


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_definition_of_another_operator_does_not_know_every_field(operator: str) -> None:
    another = "v1.1" if operator == "v1.0" else "v1.0"
    said, dijob = OF_OPERATOR[operator]
    chart = chart_of(experiment_of(**said, workload={"kind": "dijob", "dijob": {**dijob, "operator": operator}}))
    (job,) = [item for (kind, _), item in native_objects(chart).items() if kind == "DIJob"]
    assert list(definition(SCHEMAS[another]).iter_errors(job)) != []


def test_helm_prints_what_the_evaluator_makes_under_drawn_values(tmp_path: Path) -> None:
    judge, rng = Judge(tmp_path, HELM_VERSIONS), random.Random(7)
    charts = [*map(chart_for, OPERATORS), chart_with_ranks()]
    instances = [
        Instance(alias=f"exp{number}-{draw}", chart=chart, overrides=overrides(rng, chart.values))
        for number, chart in enumerate(charts)
        for draw in range(8)
    ]
    for number in range(len(charts)):
        judge.compare([each for each in instances if each.alias.startswith(f"exp{number}-")], "r1")
    assert not judge.faults, judge.faults[:3]
    assert judge.counts["equal"] > len(instances)


def test_hostile_strings_come_back_intact(tmp_path: Path) -> None:
    texts = list(HOSTILE)
    env = {f"E{index}": text for index, text in enumerate(texts)}
    process = {"command": ["prog", *texts], "args": texts, "env": env, "replicas": 2}
    for said in ({"workload": {"kind": "dijob"}}, {"compat": "di-engine"}):
        chart = chart_of(experiment_of(processes={"p": process}, configs={"c": {"text": texts[0]}}, **said))
        assert_same(chart, tmp_path / next(iter(said)))
        (found,) = [one for item in native_objects(chart).values() for one in _containers(item)]
        assert found["command"][-len(texts) - 1 :] == ["prog", *texts]
        assert found["args"] == texts
        assert {entry["name"]: entry.get("value") for entry in found["env"]}.items() >= env.items()


def _containers(item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the containers of finite workloads."""
    if item["kind"] == "DIJob":
        yield from (one for task in item["spec"]["tasks"] for one in task["template"]["spec"]["containers"])
    elif item["kind"] == "Job":
        yield from item["spec"]["template"]["spec"]["containers"]
