"""One Workflow creates, for each trial of a sweep, exactly the objects of a release of that trial."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from symphony_charts.errors import SpecError
from symphony_charts.integrations.argo.sweep import sweep_objects
from symphony_charts.kinds.base import TrialObjects, is_conductor
from tests.chart.harness import chart_of, experiment_of, native_objects
from tests.linting import lint_objects

_BRACES = "{{workflow.name}} {{{x}}} {{=1+1}}"
_TAG = re.compile(r"(?<=[:,\[])\{\{inputs\.parameters\.(\w+)\}\}")


def trial(name: str, *sets: str, values: dict[str, object] | None = None, **said: object) -> TrialObjects:
    """Return the objects of a release called `name`, without the pod of its helm test."""
    processes = {
        "learner": {"command": ["x", _BRACES], "binds": "ps", "env": {"LR": "0.1", "TEXT": _BRACES}},
        "actor": {"command": ["y"], "replicas": 3, "connects": "ps", "env": {"LR": "0.1"}},
        "board": {"command": ["z"], "lifecycle": "service", "binds": "tb"},
    }
    chart = chart_of(experiment_of(**{"processes": processes, "configs": {"a.txt": _BRACES}, **said}))
    objects = [item for (kind, _), item in native_objects(chart, sets, values, release=name).items() if kind != "Pod"]
    return TrialObjects(name=name, objects=objects)


def flow_of(trials: Sequence[TrialObjects], **said: Any) -> dict[str, Any]:
    """Return the Workflow of a sweep, as Kubernetes has it."""
    (*_, flow) = sweep_objects("exp-sweep", trials, **said)
    return dict(json.loads(json.dumps(flow)))


def expanded(flow: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return the result of Argo's substitutions in a flow: the objects of each trial, without their owner."""
    templates = {template["name"]: template for template in flow["spec"]["templates"]}
    found: dict[str, list[dict[str, Any]]] = {}
    for task in templates["sweep"]["dag"]["tasks"]:
        values = {one["name"]: one["value"] for one in task["arguments"]["parameters"]}
        for step in templates[task["template"]]["dag"]["tasks"]:
            made = json.loads(_filled(templates[step["template"]]["resource"]["manifest"], values))
            assert made["metadata"].pop("ownerReferences")
            found.setdefault(task["name"], []).append(made)
    return found


def _filled(text: str, values: Mapping[str, str]) -> str:
    def value(tag: re.Match[str]) -> str:
        return values[tag[1]]

    return _TAG.sub(value, text)


TRIALS = [
    trial("exp-a", "groups.learner.containers.learner.env.LR=0.2"),
    trial("exp-b", values={"groups": {"learner": {"containers": {"learner": {"env": {"LR": "{{workflow.name}}"}}}}}}),
    trial("exp-c", "groups.actor.replicas=5", "groups.learner.containers.learner.args={a,b}"),
    trial("exp-d", "groups.board.replicas=0"),
]


def test_every_trial_gets_the_objects_of_its_release() -> None:
    assert expanded(flow_of(TRIALS)) == {
        one.name: [item for item in one.objects if not is_conductor(item)] for one in TRIALS
    }


def test_nothing_of_the_users_is_left_for_argo() -> None:
    ours = {"{{workflow.name}}", "{{workflow.uid}}"}
    for template in flow_of(TRIALS)["spec"]["templates"]:
        text = template.get("resource", {}).get("manifest", "")
        tags = set(re.findall(r"\{\{.*?\}\}", text))
        assert all(tag in ours or _TAG.search(f":{tag}") for tag in tags)
        assert "{{workflow.name}} {" not in text
    for task in flow_of(TRIALS)["spec"]["templates"][0]["dag"]["tasks"]:
        assert "{{" not in json.dumps(task["arguments"])


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=6) | st.sampled_from([_BRACES, '"', "\\"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(_JSON, min_size=1, max_size=4))
def test_whatever_differs_each_trial_gets_its_own(specs: list[object]) -> None:
    def item(number: int, spec: object) -> dict[str, object]:
        metadata = {"name": f"j-{number}", "labels": {"symph.dev/group": "g"}}
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}

    trials = [TrialObjects(name=f"t{n}", objects=[item(n, spec)]) for n, spec in enumerate(specs)]
    before = copy.deepcopy(trials)
    assert expanded(flow_of(trials)) == {one.name: list(one.objects) for one in trials}
    assert trials == before


def test_the_same_sweep_is_the_same_workflow_and_another_one_is_not() -> None:
    names = [flow_of(trials)["metadata"]["name"] for trials in (TRIALS, TRIALS, TRIALS[:2])]
    assert names[0] == names[1] != names[2]


def test_one_failed_trial_stops_no_other() -> None:
    sweep = flow_of(TRIALS, parallel=2)["spec"]["templates"][0]
    assert (sweep["dag"]["failFast"], sweep["parallelism"]) == (False, 2)
    assert [task["name"] for task in sweep["dag"]["tasks"]] == ["exp-a", "exp-b", "exp-c", "exp-d"]


def test_what_a_trial_needs_is_there_before_its_jobs() -> None:
    for template in flow_of(TRIALS[:1])["spec"]["templates"]:
        tasks = template.get("dag", {}).get("tasks", []) if template["name"] != "sweep" else []
        others = [task["name"] for task in tasks if not task["name"].endswith("-job")]
        assert all(task["dependencies"] == others for task in tasks if task["name"].endswith("-job"))


def test_services_end_with_their_trial_however_it_ended() -> None:
    sweep, *templates = flow_of(TRIALS)["spec"]["templates"]
    hooks = {task["name"]: task.get("hooks", {}).get("exit", {}).get("template") for task in sweep["dag"]["tasks"]}
    assert hooks["exp-d"] is None
    (end,) = [template for template in templates if template["name"] == hooks["exp-a"]]
    assert end["resource"]["flags"] == [
        "job",
        "--selector=app.kubernetes.io/instance={{inputs.parameters.trial}},symph.dev/group in (board)",
    ]


def test_a_trial_is_done_when_those_are_that_decide() -> None:
    templates = flow_of([trial("exp-a", done_when=["learner"])])["spec"]["templates"]
    waits = {
        json.loads(_TAG.sub('""', text))["metadata"]["labels"]["symph.dev/group"]: "successCondition" in resource
        for resource in (template.get("resource", {}) for template in templates)
        if '"kind":"Job"' in (text := resource.get("manifest", ""))
    }
    (end,) = [template for template in templates if template["name"].endswith("-end")]
    assert waits == {"learner": True, "actor": False, "board": False}
    assert end["resource"]["flags"][0] == "job"
    assert end["resource"]["flags"][1].endswith("in (actor,board)")


def test_lint_knows_every_field_of_a_sweep() -> None:
    objects = json.loads(json.dumps(sweep_objects("exp-sweep", TRIALS, parallel=3)))
    assert not [finding for finding in lint_objects(objects) if finding.rule.startswith("schema")]


def test_the_rights_are_on_the_kinds_that_the_trials_have() -> None:
    role = next(item for item in sweep_objects("s", TRIALS) if item["kind"] == "Role")
    found = {name for rule in role["rules"] for name in rule["resources"]}  # type: ignore[attr-defined]  # a list
    assert found == {"workflowtaskresults", "configmaps", "services", "jobs"}


def test_a_named_service_account_is_used_and_none_is_made() -> None:
    (flow,) = sweep_objects("s", TRIALS, service_account="runner")
    assert flow["spec"]["serviceAccountName"] == "runner"  # type: ignore[index]  # a map


def test_a_hundred_trials_cost_little_more_than_their_settings() -> None:
    trials = [trial(f"exp-{n}", f"groups.learner.containers.learner.env.LR=0.{n}") for n in range(1, 101)]
    few, many = (len(json.dumps(flow_of(part))) for part in (trials[:2], trials))
    assert (many - few) / 98 < 1500


def test_a_sweep_that_does_not_fit_into_an_object_is_refused() -> None:
    big = [trial(f"exp-{n}", configs={"a": f"{n}" * 200_000}) for n in range(1, 7)]
    with pytest.raises(SpecError, match="bytes; Argo and Kubernetes allow") as caught:
        sweep_objects("s", big)
    assert "--on kube" in caught.value.problems[0].next
