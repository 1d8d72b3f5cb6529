"""A Workflow creates the Jobs; Argo expands only our expressions and keeps the user's text."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symphony_charts.errors import SpecError
from symphony_charts.integrations.argo.kind import manifest, manifests_of
from symphony_charts.kinds.base import is_conductor
from symphony_charts.kinds.registry import parts_of, verdict_of
from symphony_charts.placement.fit.demand import demands_of
from symphony_charts.spec import files
from symphony_charts.spec.checks.finish import finish
from symphony_charts.spec.data import from_data
from symphony_charts.spec.model import Experiment
from tests.chart.harness import Objects, assert_same, chart_of, experiment_of
from tests.chart.harness import native_objects as objects_of_chart
from tests.linting import lint, lint_objects

needs_hera = pytest.mark.skipif(importlib.util.find_spec("hera") is None, reason="hera is not installed")

_BRACES = "{{workflow.name}} {{{inputs.parameters.LR}}} {{=1+1}} {{"
_PROCESSES = {
    "learner": {"command": ["x", _BRACES], "binds": "ps", "env": {"LR": "0.1", "BRACES": _BRACES, "H": "a<b>&c"}},
    "actor": {"command": ["y"], "replicas": 3, "connects": "ps", "binds": "api", "env": {"LR": "0.1"}},
    "board": {"command": ["z"], "lifecycle": "service", "until": "uninstall"},
}


def experiment(argo: Mapping[str, object] | None = None, **said: object) -> Experiment:
    return experiment_of(**{"processes": _PROCESSES, "workload": {"kind": "argo", "argo": argo or {}}, **said})


def native(*sets: str, argo: Mapping[str, object] | None = None, **said: object) -> Objects:
    return objects_of_chart(chart_of(experiment(argo, **said)), sets)


def of_kind(objects: Objects, kind: str) -> dict[str, Any]:
    (found,) = [item for (name, _), item in objects.items() if name == kind]
    return found


def templates(item: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {template["name"]: template for template in item["spec"]["templates"]}


PIPELINE = sorted((Path(__file__).resolve().parents[2] / "examples" / "argo").glob("*.yaml"))
_CACHE = {"command": ["x"], "lifecycle": "service", "env": {"LR": "0.1"}}
_WITH_CACHE = {**_PROCESSES, "cache": _CACHE}
VARIANTS: dict[str, tuple[list[str], dict[str, object], dict[str, object]]] = {
    "plain": ([], {}, {}),
    "done when": ([], {}, {"done_when": ["learner"]}),
    "parameters": ([], {"parameters": ["LR", "H"]}, {}),
    "needs": ([], {"needs": {"data": [], "pre": ["data"]}, "retries": 2}, {"done_when": ["actor"]}),
    "schedule": ([], {"schedules": ["0 3 * * *"], "timezone": "Europe/Berlin", "concurrency": "Replace"}, {}),
    "not submitted": ([], {"submit": False, "service_account": "runner"}, {}),
    "set": (["workload.parameters.LR=0.5", "runKey=2"], {"parameters": ["LR"]}, {}),
    "fewer": (["groups.actor.replicas=0", "commonLabels.team=rl", "fullnameOverride=mine"], {"parameters": ["LR"]}, {}),
    "queued": (["groups.actor.retries=2"], {}, {"workload": {"kind": "argo", "gang": "kueue", "queue": "q"}}),
    "long": ([], {}, {"name": "an-experiment-with-a-rather-long-name-that-is-cut"}),
    "services": (["groups.learner.replicas=2"], {"parameters": ["LR"]}, {"processes": _WITH_CACHE}),
    "services alone": (["groups.actor.replicas=0", "groups.learner.replicas=0"], {}, {"processes": _WITH_CACHE}),
    "none": (["groups.actor.replicas=0", "groups.learner.replicas=0"], {}, {}),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_helm_and_the_evaluator_make_the_same_flow(variant: str, tmp_path: Path) -> None:
    sets, argo, said = VARIANTS[variant]
    assert_same(chart_of(experiment(argo, **said)), tmp_path, sets)


@pytest.mark.parametrize("path", PIPELINE, ids=lambda path: path.stem)
def test_helm_and_the_evaluator_make_the_same_of_the_examples_of_a_pipeline(path: Path, tmp_path: Path) -> None:
    chart = chart_of(files.read(path).experiment)
    assert_same(chart, tmp_path)
    assert {finding.rule for finding in lint(chart) if finding.severity != "info"} == {"rights"}


@needs_hera
@pytest.mark.filterwarnings("default")  # hera's own dependencies may warn
@pytest.mark.parametrize("variant", VARIANTS)
def test_hera_builds_the_same_flow(variant: str) -> None:
    from symphony_charts.clusters.hera_flows import built

    sets, argo, said = VARIANTS[variant]
    flows = [item for item in native(*sets, argo=argo, **said).values() if "argoproj" in str(item["apiVersion"])]
    assert [json.loads(json.dumps(built(item).to_dict())) for item in flows] == flows


@pytest.mark.parametrize("variant", VARIANTS)
def test_lint_knows_every_field_of_a_flow(variant: str) -> None:
    sets, argo, said = VARIANTS[variant]
    objects = list(native(*sets, argo=argo, **said).values())
    assert [finding for finding in lint_objects(objects) if finding.rule.startswith("schema")] == []


def test_without_a_schedule_a_run_is_a_workflow_of_its_own() -> None:
    names = {
        of_kind(native(*sets), "Workflow")["metadata"]["name"]
        for sets in ((), ("groups.actor.containers.actor.env.LR=0.2",))
    }
    assert len(names) == 2


def test_with_a_schedule_nothing_runs_before_its_time() -> None:
    kinds = {kind for kind, _ in native(argo={"schedules": "0 3 * * *"})}
    assert "CronWorkflow" in kinds
    assert not kinds & {"Workflow", "Job"}


def test_what_is_not_submitted_is_only_a_template() -> None:
    kinds = {kind for kind, _ in native(argo={"submit": False})}
    assert "WorkflowTemplate" in kinds
    assert not kinds & {"Workflow", "CronWorkflow", "Job"}


def _is_job_of_run(item: Mapping[str, object]) -> bool:
    return item["kind"] == "Job" and not is_conductor(item)


def test_the_jobs_are_those_of_kind_jobs_but_for_the_owner_and_the_run() -> None:
    objects = native(workload={"kind": "jobs"}, processes=_WITH_CACHE)
    jobs = [item for item in objects.values() if _is_job_of_run(item)]
    wrapped = list(manifests_of(of_kind(native(processes=_WITH_CACHE), "WorkflowTemplate")))
    runs = {item["metadata"]["labels"]["symph.dev/run"] for item in (*jobs, *wrapped)}  # type: ignore[index]
    texts = [
        json.dumps([(one["metadata"]["name"], one["spec"]) for one in found], sort_keys=True)  # type: ignore[index]
        for found in (jobs, wrapped)
    ]
    for run in runs:
        texts = [text.replace(run, "RUN") for text in texts]
    assert texts[0] == texts[1]


@given(st.text() | st.sampled_from([_BRACES, '"', "\\{{", "{\\u007b{"]), st.text(max_size=5))
def test_what_a_manifest_says_is_what_was_said(text: str, key: str) -> None:
    item = {"apiVersion": "v1", "kind": "Job", "metadata": {"labels": {key: text}}, "spec": {key: [text]}}
    made = manifest(item, {})
    (read,) = manifests_of({"spec": {"templates": [{"resource": {"manifest": made}}]}})
    assert read["spec"] == item["spec"]
    assert read["metadata"]["labels"] == {key: text}  # type: ignore[index]  # parsed JSON
    assert made.count("{{") == 2


def test_a_parameter_is_passed_down_from_the_submission() -> None:
    item = of_kind(native(argo={"parameters": ["LR"]}), "WorkflowTemplate")
    made = templates(item)
    assert item["spec"]["arguments"]["parameters"] == [{"name": "LR", "value": "0.1"}]
    assert made["experiment"]["inputs"]["parameters"] == [{"name": "LR", "value": "0.1"}]
    changed = of_kind(native("workload.parameters.LR=0.2", argo={"parameters": ["LR"]}), "WorkflowTemplate")
    assert changed["spec"]["arguments"]["parameters"] == [{"name": "LR", "value": "0.2"}]
    assert made["main"]["dag"]["tasks"][-1]["arguments"]["parameters"][0]["value"] == "{{workflow.parameters.LR}}"
    assert "{{=toJson(inputs.parameters.LR)}}" in made["run-actor"]["resource"]["manifest"]


def test_needs_run_first_in_their_order() -> None:
    tasks = templates(of_kind(native(argo={"needs": {"b": ["a"], "a": []}}), "WorkflowTemplate"))["main"]["dag"][
        "tasks"
    ]
    assert [(task["name"], task.get("dependencies")) for task in tasks] == [
        ("a", None),
        ("b", ["a"]),
        ("r1-exp", ["a", "b"]),
    ]


def test_old_jobs_are_gone_before_new_ones_are_created() -> None:
    made = templates(of_kind(native(), "WorkflowTemplate"))
    after = {task["name"]: task.get("dependencies") for task in made["experiment"]["dag"]["tasks"]}
    assert after == {"clear": None, "run-actor": ["clear"], "run-learner": ["clear"]}
    assert made["clear"]["resource"]["flags"][1] == (
        "--selector=app.kubernetes.io/instance=r1,app.kubernetes.io/name=exp"
    )


def test_groups_that_do_not_end_the_experiment_are_stopped_when_it_is_done() -> None:
    made = templates(of_kind(native(done_when=["learner"]), "WorkflowTemplate"))
    assert "successCondition" in made["run-learner"]["resource"]
    assert "successCondition" not in made["run-actor"]["resource"]
    assert made["experiment"]["dag"]["tasks"][-1] == {
        "name": "rest",
        "template": "rest",
        "dependencies": ["run-learner"],
    }
    assert made["rest"]["resource"]["flags"][1].endswith(",symph.dev/group in (actor)")


def test_services_of_the_run_are_deleted_after_success_or_failure_of_the_others() -> None:
    made = templates(of_kind(native(processes=_WITH_CACHE, argo={"parameters": ["LR"]}), "WorkflowTemplate"))
    (clear, run) = made["experiment"]["dag"]["tasks"]
    assert (clear["name"], run["dependencies"], run["hooks"]) == ("clear", ["clear"], {"exit": {"template": "rest"}})
    assert run["arguments"]["parameters"] == [{"name": "LR", "value": "{{inputs.parameters.LR}}"}]
    assert made["rest"]["resource"]["flags"][1].endswith(",symph.dev/group in (cache)")
    groups = {task["name"]: task for task in made["groups"]["dag"]["tasks"]}
    assert set(groups) == {"run-actor", "run-cache", "run-learner"}
    assert [name for name in sorted(groups) if "successCondition" in made[name]["resource"]] == [
        "run-actor",
        "run-learner",
    ]


def test_a_named_service_account_is_used_and_none_is_made() -> None:
    objects = native(argo={"service_account": "runner"})
    assert not {kind for kind, _ in objects} & {"ServiceAccount", "Role", "RoleBinding"}
    assert of_kind(objects, "Workflow")["spec"]["serviceAccountName"] == "runner"


@pytest.mark.parametrize(
    ("argo", "said"),
    [
        ({"parameters": ["NONE"]}, 'no process declares the variable "NONE"'),
        ({"parameters": ["BRACES"]}, "Argo would change its name or value"),
        ({"schedules": ["tomorrow"]}, "is not a schedule"),
        ({"needs": {"a": ["b"]}}, '"a" waits for "b", which is not in `needs`'),
        ({"needs": {"a": ["b"], "b": ["a"]}}, "wait for each other"),
        ({"needs": ["A b"]}, '"A b" is not a valid name of a release'),
        ({"retries": -1}, "retries is negative"),
    ],
)
def test_what_argo_could_not_do_is_refused_in_the_spec(argo: dict[str, object], said: str) -> None:
    with pytest.raises(SpecError) as caught:
        finish(experiment(argo), for_cluster=True)
    assert said in str(caught.value)


def test_lint_looks_into_the_jobs_of_a_flow() -> None:
    said = experiment_of(processes={"p": {"command": ["x"], "image": "busybox"}}, workload={"kind": "argo"})
    assert [finding.path for finding in lint(chart_of(said)) if finding.rule == "image-latest"]


def test_a_flow_asks_for_what_its_jobs_ask_for() -> None:
    objects = native(workload={"kind": "jobs"}, processes=_WITH_CACHE)
    wanted = demands_of([dict(item) for item in objects.values() if _is_job_of_run(item)])
    got = demands_of([dict(of_kind(native(processes=_WITH_CACHE), "WorkflowTemplate"))])
    assert got == wanted


def test_status_reads_the_groups_of_a_flow_before_its_jobs_are_there() -> None:
    flow = of_kind(native(), "Workflow")
    assert {part["metadata"]["labels"]["symph.dev/group"] for part in parts_of(flow)} == {"actor", "learner"}


def test_of_the_flows_of_a_schedule_the_last_one_counts() -> None:
    def flow(created: str, phase: str) -> dict[str, object]:
        metadata = {"name": created, "creationTimestamp": created}
        return {"kind": "Workflow", "metadata": metadata, "spec": {}, "status": {"phase": phase}}

    old, new = flow("2026-01-01T00:00:00Z", "Failed"), flow("2026-01-02T00:00:00Z", "Running")
    assert verdict_of([old, new]) is None
    assert verdict_of([old]) == "failed"


def test_a_lone_word_is_a_list_of_one() -> None:
    data = {"name": "e", "processes": {"p": {"command": ["x"]}}}
    short = from_data({**data, "workload": {"argo": {"schedules": "@daily", "needs": "a"}}})
    long = from_data({**data, "workload": {"argo": {"schedules": ["@daily"], "needs": {"a": []}}}})
    assert short == long
