"""Kinds `dijob` and `argo`: objects as their controllers read them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from symphony_charts.chart.build.chart import Release
from symphony_charts.chart.release import merge
from symphony_charts.errors import SpecError
from symphony_charts.integrations.argo.kind import manifests_of
from symphony_charts.spec.checks.finish import finish
from symphony_charts.spec.model import Experiment
from tests.chart.draws import Overrides
from tests.chart.harness import experiment_of
from tests.chart.judge import Instance, Judge
from tests.chart.objects import Item
from tests.chart.strategies import HOSTILE
from tests.chart.test_build_objects import chart, objects_of
from tests.chart.test_dijob_gate import OF_OPERATOR, SCHEMAS, definition
from tests.tools import HELM_VERSIONS

_FROM_ARGO = ("inputs.parameters.LR", "workflow.name", "workflow.uid")


def dijob_experiment(operator: str) -> Experiment:
    said, settings_of_job = OF_OPERATOR[operator]
    workload = {"kind": "dijob", "dijob": {**settings_of_job, "operator": operator}}
    return finish(experiment_of(**said, workload=workload), for_cluster=True)


@pytest.mark.parametrize("operator", OF_OPERATOR)
def test_operators_take_the_dijobs(operator: str, tmp_path: Path) -> None:
    experiment = dijob_experiment(operator)
    (job,) = [item for item in objects_of(experiment) if item["kind"] == "DIJob"]
    assert list(definition(SCHEMAS[operator]).iter_errors(job)) == []
    judge = Judge(tmp_path, HELM_VERSIONS)
    judge.compare([Instance(alias="exp", chart=chart(experiment))], "r1")
    assert not judge.faults, judge.faults


@pytest.mark.parametrize(
    ("operator", "changed", "is_same"),
    [
        ("v1.1", {"groups": {"collector": {"replicas": 5}}}, True),
        ("v1.1", {"groups": {"collector": {"replicas": 0}}}, False),
        ("v1.1", {"workload": {"retries": 7}}, True),
        ("v1.1", {"services": {"data": {"port": 9}}}, False),
        ("v1.0", {"groups": {"worker": {"replicas": 5}}}, False),
        ("v0", {"groups": {"collector": {"containers": {"collector": {"args": ["x"]}}}}}, False),
    ],
)
def test_tasks_are_scaled_within_a_run(operator: str, changed: Item, is_same: bool) -> None:
    built = chart(dijob_experiment(operator))
    before, after = (
        {item["metadata"]["name"] for item in built.objects(values, Release(name="r1")) if item["kind"] == "DIJob"}
        for values in (built.values, merge(built.values, changed))
    )
    assert (before == after) is is_same


@pytest.mark.parametrize("name", ["n" * 31, "n" * 40])
def test_tasks_whose_pods_would_have_too_long_names_are_refused(name: str) -> None:
    experiment = experiment_of(processes={name: {"command": ["x"]}}, workload={"kind": "dijob"})
    with pytest.raises(SpecError, match="a task has at most 30"):
        chart(finish(experiment, for_cluster=True))


def test_argo_expands_no_text_of_users(tmp_path: Path) -> None:
    texts = [*HOSTILE, "{{workflow.name}}", "{{=1+1}}", "{{{ }}}", "{{inputs.parameters.LR}}", ": {{x}}"]
    process = {"command": ["x", *texts], "env": {"LR": '0.1"\\', "OTHER": texts[-1]}, "replicas": 2}
    workload = {"kind": "argo", "argo": {"parameters": ["LR"]}}
    built = chart(finish(experiment_of(processes={"p": process}, workload=workload), for_cluster=True))
    (made,) = [item for item in built.objects(built.values, Release(name="r1")) if item["kind"] == "Workflow"]
    (manifest,) = [one["resource"]["manifest"] for one in made["spec"]["templates"] if one["name"] == "run-p"]
    found = re.findall(r"\{\{.*?\}\}", manifest)
    assert sorted(found) == [f"{{{{=toJson({each})}}}}" for each in _FROM_ARGO]
    (job,) = manifests_of(made)
    container = job["spec"]["template"]["spec"]["containers"][0]  # type: ignore[index]  # parsed JSON
    assert container["command"] == ["x", *texts]
    env = {entry["name"]: entry.get("value") for entry in container["env"]}
    assert (env["LR"], env["OTHER"]) == ('0.1"\\', texts[-1])
    judge = Judge(tmp_path, HELM_VERSIONS)
    odd = {"groups": {"p": {"containers": {"p": {"args": ["x\u0085y", "\x7f{{", "\ufeffbom", "a\u2028b"]}}}}}
    over = Overrides(values={**odd, "workload": {"parameters": {"LR": "{{=2}}"}}})
    judge.compare([Instance(alias="exp", chart=built), Instance(alias="b", chart=built, overrides=over)], "r1")
    assert not judge.faults, judge.faults
