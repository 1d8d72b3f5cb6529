"""The Jobs of all groups that end stand in one AppWrapper, which is queued, started and started again as a whole."""

from __future__ import annotations

from typing import Any

import pytest

from symphony_charts.chart.lint import lint
from symphony_charts.errors import SpecError
from tests.chart.harness import Objects, chart_of, experiment_of, native_objects

_PROCESSES: dict[str, object] = {
    "learner": {"command": ["x"], "binds": "ps", "requests": {"cpu": "2", "memory": "1Gi"}, "gpus": 1},
    "actor": {"command": ["x"], "replicas": 3, "connects": "ps", "binds": "api"},
    "board": {"command": ["x"], "lifecycle": "service"},
}
_PREFIX = "workload.codeflare.dev.appwrapper/"
_MCAD = "workload.appwrapper.version=v1beta1"


def objects(*sets: str, workload: dict[str, object] | None = None, **said: object) -> Objects:
    """The objects of an experiment of kind appwrapper under overrides."""
    data: dict[str, object] = {"processes": _PROCESSES, **said}
    return native_objects(chart_of(experiment_of(**data, workload={"kind": "appwrapper", **(workload or {})})), sets)


def app_wrapper(*sets: str, **said: Any) -> dict[str, Any]:
    """Its AppWrapper."""
    (found,) = [item for (kind, _), item in objects(*sets, **said).items() if kind == "AppWrapper"]
    return found


def jobs(item: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The Jobs inside, by group."""
    spec = item["spec"]
    parts = spec["components"] if "components" in spec else spec["resources"]["GenericItems"]
    inside = [part.get("template") or part["generictemplate"] for part in parts]
    return {job["metadata"]["labels"]["symph.dev/group"]: job for job in inside}


def test_the_jobs_inside_are_called_as_those_of_kind_jobs() -> None:
    inside = {job["metadata"]["name"].rpartition("-")[0] for job in jobs(app_wrapper()).values()}
    assert inside == {"r1-exp-learner", "r1-exp-actor"}


def test_services_and_what_its_controller_may_not_create_stay_outside() -> None:
    kinds = {kind for kind, _ in objects()}
    assert {"AppWrapper", "ConfigMap", "Service", "StatefulSet"} <= kinds
    assert "Job" not in kinds


def test_the_queue_is_the_wrappers_and_of_no_job() -> None:
    made = app_wrapper(workload={"gang": "kueue", "queue": "q"})
    assert made["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "q"
    assert not [job for job in jobs(made).values() if "kueue.x-k8s.io/queue-name" in job["metadata"]["labels"]]


def test_pod_sets_are_those_that_the_webhook_infers_of_a_job() -> None:
    sets = [part["podSets"] for part in app_wrapper()["spec"]["components"]]
    assert sets == [[{"path": "template.spec.template", "replicas": count}] for count in (3, 1)]


def test_a_new_version_of_the_chart_changes_nothing_inside() -> None:
    inside = [job["metadata"]["labels"] for job in jobs(app_wrapper()).values()]
    assert not [labels for labels in inside if "helm.sh/chart" in labels]


def test_a_pods_retries_are_those_of_the_whole() -> None:
    made = app_wrapper("groups.actor.backoffLimit=4", "groups.learner.backoffLimit=2")
    assert made["metadata"]["annotations"][f"{_PREFIX}retryLimit"] == "4"
    assert {job["spec"]["backoffLimit"] for job in jobs(made).values()} == {0}
    assert "backoffLimitPerIndex" not in jobs(made)["actor"]["spec"]


def test_restarts_in_place_stay_the_jobs() -> None:
    made = app_wrapper("groups.actor.backoffLimit=4", "groups.actor.restartPolicy=OnFailure")
    assert made["metadata"]["annotations"][f"{_PREFIX}retryLimit"] == "0"
    assert jobs(made)["actor"]["spec"]["backoffLimit"] == 13


def test_the_users_annotations_stand_over_ours() -> None:
    made = app_wrapper(workload={"appwrapper": {"annotations": {f"{_PREFIX}warmupGracePeriodDuration": "5m"}}})
    assert made["metadata"]["annotations"][f"{_PREFIX}warmupGracePeriodDuration"] == "5m"


def test_more_pod_sets_than_the_webhook_takes_are_refused() -> None:
    nine = {f"p{number}": {"command": ["x"]} for number in range(9)}
    with pytest.raises(SpecError, match="at most 8"):
        app_wrapper(processes=nine)
    assert app_wrapper(processes=nine, workload={"appwrapper": {"version": "v1beta1"}})


def test_another_end_is_a_new_run() -> None:
    assert app_wrapper()["metadata"]["name"] != app_wrapper("doneWhen={learner/learner}")["metadata"]["name"]


def test_mcad_adds_up_what_each_container_asks_for() -> None:
    items = app_wrapper(_MCAD)["spec"]["resources"]["GenericItems"]
    (learner,) = items[1]["custompodresources"]
    assert learner["replicas"] == 1
    assert learner["requests"]["cpu"] == "2"
    assert learner["limits"] == {"memory": "1Gi", "nvidia.com/gpu": "1"}
    assert items[0]["custompodresources"][0]["replicas"] == 3


def test_mcad_takes_the_priority_of_the_job() -> None:
    assert app_wrapper(_MCAD, workload={"priority": -3})["spec"]["priority"] == -3
    assert "priority" not in app_wrapper(_MCAD)["spec"]


def test_mcad_queues_again_only_where_a_gang_is_asked_for() -> None:
    assert "schedulingSpec" not in app_wrapper(_MCAD, "groups.actor.backoffLimit=2")["spec"]
    assert app_wrapper(_MCAD, "groups.actor.minReplicas=2")["spec"]["schedulingSpec"] == {"minAvailable": 3}


def test_under_mcad_retries_stay_the_jobs() -> None:
    made = jobs(app_wrapper(_MCAD, "groups.actor.backoffLimit=2"))["actor"]
    assert (made["spec"]["backoffLimitPerIndex"], made["spec"]["maxFailedIndexes"]) == (2, 0)


def test_mcad_gives_a_run_up_that_has_failed() -> None:
    items = app_wrapper(_MCAD)["spec"]["resources"]["GenericItems"]
    assert {item["completionstatus"] for item in items} == {"Complete,Failed"}


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_no_field_of_an_appwrapper_or_of_a_job_inside_is_unknown(version: str) -> None:
    workload = {"kind": "appwrapper", "retries": 2, "priority": 1, "appwrapper": {"version": version}}
    chart = chart_of(experiment_of(processes=_PROCESSES, workload=workload))
    assert not [one for one in lint(chart) if one.rule.startswith("schema")]


def test_the_jobs_inside_are_linted_like_any_other() -> None:
    chart = chart_of(experiment_of(processes=_PROCESSES, workload={"kind": "appwrapper"}))
    overlay: dict[str, object] = {"groups": {"actor": {"overlay": {"spec": {"hostNetwork": True, "nonsense": 1}}}}}
    rules = {finding.rule for finding in lint(chart, overrides=overlay)}
    assert {"schema", "pod-security"} <= rules - {finding.rule for finding in lint(chart)}


def test_nothing_is_wrapped_where_nothing_ends() -> None:
    only = {"board": {"command": ["x"], "lifecycle": "service"}}
    assert not [key for key in objects(processes=only) if key[0] == "AppWrapper"]
