"""An exported DIJob reads as its source experiment."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from symphony_charts.errors import SpecError
from symphony_charts.importers.input_file import read
from symphony_charts.integrations.dijob.export import dijob_objects
from symphony_charts.integrations.dijob.importer import import_dijob
from symphony_charts.integrations.dijob.settings import Operator
from symphony_charts.spec.data import from_data
from symphony_charts.spec.model import Experiment
from tests.importers.samples import EXAMPLES

RUN = {"command": ["x"], "image": "i"}
BOARD = {**RUN, "lifecycle": "service"}


def reread(experiment: Experiment, dialect: Operator | None = None) -> Experiment:
    text = "\n---\n".join(json.dumps(item) for item in dijob_objects(experiment, dialect).objects)
    return import_dijob(read(text.encode(), "again.yaml")).experiment


@pytest.mark.parametrize("name", ["dijob-v0.yaml", "dijob-v1.0.yaml", "dijob-v1.1.0.yaml", "dijob-v1.1.yaml"])
def test_an_imported_job_comes_back_as_it_was(name: str) -> None:
    experiment = import_dijob(read((EXAMPLES / name).read_bytes(), name)).experiment
    assert reread(experiment) == experiment


def made(**fields: object) -> Experiment:
    return from_data({"name": "x", "processes": {"learner": {"image": "i", "cmds": ["run"], **fields}}})


def job_of(experiment: Experiment, dialect: Operator = "v1.1") -> dict[str, Any]:
    objects = dijob_objects(experiment, dialect).objects
    return cast("dict[str, Any]", next(item for item in objects if item["kind"] == "DIJob"))


def test_every_field_that_the_minimal_crd_gives_no_default_is_said() -> None:
    spec = job_of(made())["spec"]
    assert {key: spec[key] for key in ("priority", "backoffLimit", "cleanPodPolicy", "preemptible")} == {
        "priority": "normal",
        "backoffLimit": 0,
        "cleanPodPolicy": "Running",
        "preemptible": False,
    }
    (task,) = spec["tasks"]
    assert (task["name"], task["type"], task["replicas"]) == ("learner", "learner", 1)
    # The name that operators look for.
    assert task["template"]["spec"]["containers"][0]["name"] == "di-container"


def test_processes_find_services_by_the_names_that_the_operator_gives_pods() -> None:
    experiment = from_data(
        {
            "name": "x",
            "processes": {
                "ps": {"image": "i", "cmds": ["serve"], "binds": {"ps": 7000}, "replicas": 2},
                "agent": {"image": "i", "cmds": ["run"], "connects": ["ps"]},
            },
        }
    )
    env = {
        item["name"]: item.get("value")
        for item in job_of(experiment)["spec"]["tasks"][1]["template"]["spec"]["containers"][0]["env"]
    }
    assert env["SYMPH_PS_ADDR"] == "x-ps-0.di-x:7000"
    assert env["SYMPH_PS_HOSTS"] == "x-ps-0.di-x:7000,x-ps-1.di-x:7000"


@pytest.mark.parametrize(
    ("name", "dialect", "labels"),
    [
        ("learner", "v1.1", {"diengine/job": "x", "diengine/task-name": "learner"}),
        ("coordinator", "v0", {"dijob-name": "x", "replica-type": "coordinator"}),
        ("coordinator", "v1.0", {"diengine/job": "x"}),
    ],
)
def test_an_exposed_service_selects_pods_by_the_labels_of_the_operator(
    name: str, dialect: Operator, labels: dict[str, str]
) -> None:
    process = {"image": "i", "cmds": ["run"], "exposes": {"board": 6006}}
    objects = dijob_objects(from_data({"name": "x", "processes": {name: process}}), dialect).objects
    service = cast("dict[str, Any]", objects[-1])
    assert (service["kind"], service["spec"]["type"], service["spec"]["selector"]) == ("Service", "ClusterIP", labels)


def test_an_address_that_nobody_can_know_is_noted_where_it_is_dialled() -> None:
    processes = {
        "coordinator": {"image": "i", "cmds": ["run"], "connects": ["collector"]},
        "collector": {"image": "i", "cmds": ["serve"], "binds": "collector"},
    }
    notes = dijob_objects(from_data({"name": "x", "processes": processes}), "v0").notes
    assert [one.path for one in notes if "is unknown until its pods exist" in one.what] == ["processes.coordinator"]


@pytest.mark.parametrize(
    ("data", "dialect", "what"),
    [
        ({"workload": {"gang": "kueue", "queue": "q"}}, "v1.1", "supports no queue and no gang"),
        ({}, "v0", "has the roles"),
        ({"processes": {"a": {"cmds": ["x"]}, "b": {"cmds": ["x"]}}}, "v1.0", "one kind of pod"),
        ({"name": "x" * 40, "processes": {"y" * 30: {"cmds": ["x"]}}}, "v1.1", "more than 63 characters"),
        ({"processes": {"board": BOARD, "worker": {**RUN, "replicas": 3}}}, "v1.0", 'cannot run "board"'),
        ({"processes": {"coordinator": RUN, "board": BOARD}}, "v0", 'not "board"'),
        ({"processes": {"b": {**RUN, "replicas": 0}}}, "v1.1", "has a replica"),
    ],
)
def test_what_no_dijob_can_say_is_refused(data: dict[str, object], dialect: Operator, what: str) -> None:
    experiment = from_data({"name": "x", "processes": {"a": {"cmds": ["x"]}}, **data})
    with pytest.raises(SpecError, match=what):
        dijob_objects(experiment, dialect)


def test_only_operators_that_know_a_group_are_told_it() -> None:
    workload = {"kind": "dijob", "dijob": {"group": "g"}}
    experiment = from_data({"name": "e", "processes": {"worker": RUN}, "workload": workload})
    known: tuple[Operator, ...] = ("v1.0", "v1.1.0", "v1.1")
    told = {operator: "group" in job_of(experiment, operator)["spec"] for operator in known}
    assert told == {"v1.0": True, "v1.1.0": True, "v1.1": False}


def test_what_has_no_replicas_is_no_task() -> None:
    experiment = from_data({"name": "e", "processes": {"a": RUN, "b": {**RUN, "replicas": 0}}})
    assert [task["name"] for task in job_of(experiment)["spec"]["tasks"]] == ["a"]


def test_a_service_that_runs_nowhere_has_no_address() -> None:
    held = {"board": {**RUN, "replicas": 0, "binds": "board"}, "a": {**RUN, "connects": "board"}}
    job = job_of(from_data({"name": "e", "processes": held}))
    assert "BOARD" not in json.dumps(job)


@pytest.mark.parametrize(("operator", "runs"), [("v0", "coordinator"), ("v1.0", "learner"), ("v1.1", "learner")])
def test_what_has_no_replicas_counts_for_no_operator(operator: Operator, runs: str) -> None:
    held = {"spare": {**RUN, "replicas": 0}, runs: RUN, "rest": {**RUN, "replicas": 0}}
    types = {"dijob": {"tasks": {"spare": "learner"}}}
    spec = job_of(from_data({"name": "e", "workload": types, "processes": held}), operator)["spec"]
    whole = {"v0": runs, "v1.0": "template", "v1.1": "tasks"}
    assert [key for key in spec if key in ("template", "tasks", "spare", "rest", runs)] == [whole[operator]]


def test_a_role_that_starts_again_on_failure_says_so() -> None:
    experiment = from_data({"name": "e", "processes": {"coordinator": {**RUN, "restart": "on-failure"}}})
    assert job_of(experiment, "v0")["spec"]["coordinator"]["template"]["spec"]["restartPolicy"] == "OnFailure"
