"""The gate for kind dijob: under each operator helm prints what `assemble` makes, live edits and refusals included."""

from __future__ import annotations

import gzip
import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from symphony_charts.errors import SpecError
from symphony_charts.spec.data import from_data
from tests.chart.harness import (
    EXAMPLE_NAMES,
    assert_same,
    chart_of,
    example_chart,
    experiment_of,
    native_objects,
    run_helm,
    write_chart,
)
from tests.chart.strategies import HOSTILE, experiments
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
OVERRIDES = [
    [],
    ["groups.collector.replicas=5"],
    ["groups.learner.replicas=3", "groups.collector.replicas=1"],
    ["groups.learner.backoffLimit=4", "groups.collector.activeDeadlineSeconds=9"],
    ["groups.learner.overlay.spec.activeDeadlineSeconds=5"],
    ["groups.learner.replicas=0"],
    ["workload.order={collector,learner}"],
    ["groups.worker.replicas=1", "groups.aggregator.replicas=0"],
    ["services.data=null"],
    ["hold=true", "runKey=3"],
    ["groups.collector.containers.collector.env.SYMPH_RUN=mine"],
]


@pytest.mark.parametrize("sets", OVERRIDES, ids=lambda sets: sets[0] if sets else "none")
@pytest.mark.parametrize("operator", OPERATORS)
def test_helm_prints_what_assemble_makes(operator: str, sets: list[str], tmp_path: Path) -> None:
    said, dijob = OF_OPERATOR[operator]
    workload = {"kind": "dijob", "dijob": {**dijob, "operator": operator}}
    own = [text for text in sets if not _is_for_another(text, said)]
    assert_same(chart_of(experiment_of(**said, workload=workload)), tmp_path, own)


_SCHEMAS = {
    "v1.1": "v2alpha1_DIJob",
    "v1.1.0": "v2alpha1_DIJob@v1.1.0",
    "v1.0": "v2alpha1_DIJob@v1.0.0",
    "v0": "v1alpha1_DIJob",
}


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_definition_of_that_very_operator_knows_every_field(operator: str) -> None:
    said, dijob = OF_OPERATOR[operator]
    workload = {"kind": "dijob", "dijob": {**dijob, "operator": operator}}
    objects = native_objects(chart_of(experiment_of(**said, workload=workload)))
    (job,) = [item for (kind, _), item in objects.items() if kind == "DIJob"]
    assert list(definition(_SCHEMAS[operator]).iter_errors(job)) == []
    another = "v1.1" if operator == "v1.0" else "v1.0"
    assert list(definition(_SCHEMAS[another]).iter_errors(job)) != []


def definition(name: str) -> jsonschema_rs.Draft7Validator:
    """The strict schema of one version."""
    file = resources.files("symphony_charts.chart.lint") / "schemas" / f"diengine.opendilab.org_{name}.json.gz"
    schema = json.loads(gzip.decompress(file.read_bytes()))["schema"]
    return jsonschema_rs.Draft7Validator(schema, validate_formats=False)


def test_without_labels_of_tasks_no_policy_can_be(tmp_path: Path) -> None:
    workload = {"kind": "dijob", "dijob": {"operator": "v1.1.0"}}
    chart = chart_of(experiment_of(**OF_OPERATOR["v1.1.0"][0], workload=workload))
    with pytest.raises(SpecError, match="no policy can select them"):
        native_objects(chart, ["networkPolicy.enabled=true"])
    agree(chart, ["networkPolicy.enabled=true"], tmp_path)


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_task_too_long_for_the_names_of_its_pods_is_refused_by_both(operator: str, tmp_path: Path) -> None:
    workload = {"kind": "dijob", "dijob": {"operator": operator}}
    processes = {"collector-of-episodes-of-a-random-policy": RUN, "coordinator": RUN}
    agree(
        chart_of(experiment_of(name="a-rather-long-name-of-a-job", processes=processes, workload=workload)),
        [],
        tmp_path,
    )


def test_the_coordinators_that_operator_v0_would_not_start_are_refused_by_both(tmp_path: Path) -> None:
    chart = chart_of(experiment_of(**ROLES, workload={"kind": "dijob", "dijob": {"operator": "v0"}}))
    with pytest.raises(SpecError, match="operator v0 starts one coordinator"):
        native_objects(chart, ["groups.coordinator.replicas=2"])
    agree(chart, ["groups.coordinator.replicas=2"], tmp_path)


def _is_for_another(text: str, said: Mapping[str, object]) -> bool:
    """Whether an override names a group or a service that this experiment does not have."""
    kind, _, name = text.partition(".")
    return kind in ("groups", "services") and re.split("[.=]", name)[0] not in str(said["processes"])


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("name", EXAMPLE_NAMES)
def test_of_every_example_helm_and_assemble_print_or_refuse_the_same(name: str, operator: str, tmp_path: Path) -> None:
    agree(example_chart(name), ["workload.kind=dijob", f"workload.dijob.operator={operator}"], tmp_path)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(experiments(), st.sampled_from(OPERATORS), st.booleans())
def test_of_generated_experiments_they_do_too(data: dict[str, object], operator: str, is_compat: bool) -> None:
    data = {**data, "workload": {}, **({"compat": "di-engine"} if is_compat else {})}
    chart = chart_of(from_data(data))
    with tempfile.TemporaryDirectory() as folder:
        agree(chart, ["workload.kind=dijob", f"workload.dijob.operator={operator}"], Path(folder) / "kind")
        agree(chart, [], Path(folder) / "compat")


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
    """The containers of what ends."""
    if item["kind"] == "DIJob":
        yield from (one for task in item["spec"]["tasks"] for one in task["template"]["spec"]["containers"])
    elif item["kind"] == "Job":
        yield from item["spec"]["template"]["spec"]["containers"]


def agree(chart: object, sets: list[str], folder: Path) -> None:
    """Either both print the same objects, or helm fails with every fault that `assemble` finds."""
    try:
        native_objects(chart, sets)  # type: ignore[arg-type]  # a chart
    except SpecError as error:
        said = [
            f"{problem.path}: {problem.what}" if "." in problem.path else problem.what for problem in error.problems
        ]
        where = write_chart(chart, folder)  # type: ignore[arg-type]  # a chart
        arguments = [word for text in sets for word in ("--set", text)]
        for version in HELM_VERSIONS:
            ended = run_helm(version, "template", "r1", where, *arguments, check=False)
            assert ended.returncode, said
            assert all(line.rpartition(": ")[2] in ended.stderr for line in said), (said, ended.stderr)
    else:
        assert_same(chart, folder, sets)  # type: ignore[arg-type]  # a chart
