"""What is written back as a DIJob reads as the experiment it was made of."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symphony_charts.errors import SpecError
from symphony_charts.importers.dijob import import_dijob
from symphony_charts.importers.dijob_export import dijob_objects
from symphony_charts.importers.source import read
from symphony_charts.spec.dijob import Operator
from symphony_charts.spec.load import from_data
from symphony_charts.spec.model import Experiment
from tests.importers.samples import EXAMPLES


def reread(experiment: Experiment, dialect: Operator | None = None) -> Experiment:
    text = "\n---\n".join(json.dumps(item) for item in dijob_objects(experiment, dialect).objects)
    return import_dijob(read(text.encode(), "again.yaml")).experiment


@pytest.mark.parametrize("name", ["dijob-v0.yaml", "dijob-v1.0.yaml", "dijob-v1.1.0.yaml", "dijob-v1.1.yaml"])
def test_an_imported_job_comes_back_as_it_was(name: str) -> None:
    experiment = import_dijob(read((EXAMPLES / name).read_bytes(), name)).experiment
    assert reread(experiment) == experiment


ENV = st.dictionaries(
    st.sampled_from(["A", "B_C", "HOME"]),
    st.text("ab$ (){}'\"\n", max_size=8).filter(lambda t: "$(" not in t),
    max_size=2,
)
REQUESTS, LIMITS = (
    st.dictionaries(st.sampled_from(["cpu", "memory", "x.com/y"]), st.sampled_from(amounts), max_size=2)
    for amounts in (["1", "500m"], ["1", "2"])
)


@st.composite
def containers(draw: st.DrawFn) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "di-container", "image": draw(st.sampled_from(["a:1", "reg.io/b@sha256:0"]))}
    start = draw(st.sampled_from(["none", "plain", "script", "bash"]))
    if start == "plain":
        container |= {"command": ["run"], "args": draw(st.lists(st.text("ab -=", min_size=1, max_size=5), max_size=2))}
    if start == "script":
        body = draw(st.text("ab \n'$", max_size=20))
        script = f"cat <<EOF > conf.py\n{body}\nEOF\nrun conf.py"
        container |= {
            "command": ["/bin/bash", "-c"],
            "args": [draw(st.sampled_from([script, "a; b", "a\n\n# c\nb", "one"]))],
        }
    if start == "bash":
        container |= {"command": ["bash", "-c"], "args": ["[[ x ]] && run"]}
    container["env"] = [{"name": name, "value": value} for name, value in draw(ENV).items()]
    container["resources"] = {"requests": draw(REQUESTS), "limits": draw(LIMITS)}
    if draw(st.booleans()):
        container["volumeMounts"] = [{"name": "v", "mountPath": "/v", "readOnly": True, "subPath": "s"}]
    if draw(st.booleans()):
        container["securityContext"] = {"runAsUser": 7}
    return container


VOLUMES: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        {"hostPath": {"path": "/a", "type": "Directory"}},
        {"emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
        {"nfs": {"server": "s", "path": "/p"}},
        {"persistentVolumeClaim": {"claimName": "c"}},
        {"configMap": {"name": "m", "items": [{"key": "k", "path": "p"}], "defaultMode": 0o600}},
        {"secret": {"secretName": "s"}},
        {"csi": {"driver": "d"}},
    ]
)


@st.composite
def jobs(draw: st.DrawFn) -> dict[str, Any]:
    types = draw(st.lists(st.sampled_from(["learner", "collector", "evaluator", "none"]), min_size=1, max_size=3))
    tasks = [
        {
            "name": f"{kind}-{index}",
            "type": kind,
            "replicas": draw(st.integers(0, 5)),
            "template": {
                "spec": {"containers": [draw(containers())], "nodeSelector": draw(st.sampled_from([{}, {"a": "b"}]))}
            },
        }
        for index, kind in enumerate(types)
    ]
    spec = {
        "backoffLimit": draw(st.integers(0, 3)),
        "cleanPodPolicy": draw(st.sampled_from(["Running", "All", "None"])),
        "priority": draw(st.sampled_from(["normal", "high"])),
        "volumes": [{"name": "v", **draw(VOLUMES)}],
        "tasks": tasks,
    }
    return {"apiVersion": "diengine.opendilab.org/v2alpha1", "kind": "DIJob", "metadata": {"name": "job"}, "spec": spec}


@settings(max_examples=120, deadline=None)
@given(jobs())
def test_any_job_comes_back_as_it_was(job: dict[str, Any]) -> None:
    experiment = import_dijob(read(json.dumps(job).encode(), "job.json")).experiment
    again = reread(experiment)
    assert again == experiment
    assert reread(again) == again


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
    assert {key: spec["tasks"][0][key] for key in ("name", "type", "replicas")} == {
        "name": "learner",
        "type": "learner",
        "replicas": 1,
    }


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


def test_an_exposed_service_selects_the_tasks_pods() -> None:
    objects = dijob_objects(made(exposes={"board": 6006})).objects
    service = cast("dict[str, Any]", objects[-1])
    assert (service["kind"], service["spec"]["selector"]) == (
        "Service",
        {"diengine/job": "x", "diengine/task-name": "learner"},
    )


@pytest.mark.parametrize(
    ("data", "dialect", "what"),
    [
        ({"workload": {"gang": "kueue", "queue": "q"}}, "v1.1", "neither be queued"),
        ({}, "v0", "knows the roles"),
        ({"processes": {"a": {"cmds": ["x"]}, "b": {"cmds": ["x"]}}}, "v1.0", "one kind of pod"),
        ({"name": "x" * 40, "processes": {"y" * 30: {"cmds": ["x"]}}}, "v1.1", "more than 63 characters"),
    ],
)
def test_what_no_dijob_can_say_is_refused(data: dict[str, object], dialect: Operator, what: str) -> None:
    experiment = from_data({"name": "x", "processes": {"a": {"cmds": ["x"]}}, **data})
    with pytest.raises(SpecError, match=what):
        dijob_objects(experiment, dialect)


def test_a_lone_container_has_the_name_that_operators_look_for() -> None:
    assert job_of(made())["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["name"] == "di-container"
