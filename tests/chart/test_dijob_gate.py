"""Kind `dijob` under each operator: its CRD knows every field, and helm prints the evaluator's objects."""

from __future__ import annotations

import gzip
import json
import random
from importlib import resources
from pathlib import Path

import jsonschema_rs

from symphony_charts.chart.build.chart import BuiltChart
from symphony_charts.spec.data import from_data
from tests.chart.draws import overrides
from tests.chart.harness import built_of
from tests.chart.judge import Instance, Judge
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
