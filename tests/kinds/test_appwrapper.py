"""The Jobs of all finite groups are in one AppWrapper, which is queued, started and restarted as a whole."""

from __future__ import annotations

from typing import Any

import pytest

from symphony_charts.errors import SpecError
from tests.chart.harness import Objects, chart_of, experiment_of, native_objects

_PROCESSES: dict[str, dict[str, object]] = {
    "learner": {"command": ["x"], "binds": "ps", "requests": {"cpu": "2", "memory": "1Gi"}, "gpus": 1},
    "actor": {"command": ["x"], "replicas": 3, "connects": "ps", "binds": "api"},
    "board": {"command": ["x"], "lifecycle": "service"},
}
_MCAD = {"version": "v1beta1"}


def objects(*sets: str, workload: dict[str, object] | None = None, **said: object) -> Objects:
    data: dict[str, object] = {"processes": _PROCESSES, **said}
    return native_objects(chart_of(experiment_of(**data, workload={"kind": "appwrapper", **(workload or {})})), sets)


def app_wrapper(*sets: str, **said: Any) -> dict[str, Any]:
    (found,) = [item for (kind, _), item in objects(*sets, **said).items() if kind == "AppWrapper"]
    return found


def jobs(item: dict[str, Any]) -> dict[str, dict[str, Any]]:
    spec = item["spec"]
    parts = spec["components"] if "components" in spec else spec["resources"]["GenericItems"]
    inside = [part.get("template") or part["generictemplate"] for part in parts]
    return {job["metadata"]["labels"]["symph.dev/group"]: job for job in inside}


def test_the_jobs_inside_are_called_as_those_of_kind_jobs() -> None:
    inside = {job["metadata"]["name"].rpartition("-")[0] for job in jobs(app_wrapper()).values()}
    assert inside == {"r1-exp-learner", "r1-exp-actor"}


def test_the_queue_is_the_wrappers_and_of_no_job() -> None:
    made = app_wrapper(workload={"gang": "kueue", "queue": "q"})
    assert made["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "q"
    assert not [job for job in jobs(made).values() if "kueue.x-k8s.io/queue-name" in job["metadata"]["labels"]]


def test_the_users_annotations_replace_ours() -> None:
    key = "workload.codeflare.dev.appwrapper/warmupGracePeriodDuration"
    made = app_wrapper(workload={"appwrapper": {"annotations": {key: "5m"}}})
    assert made["metadata"]["annotations"][key] == "5m"


def test_more_pod_sets_than_the_webhook_takes_are_refused() -> None:
    nine = {f"p{number}": {"command": ["x"]} for number in range(9)}
    with pytest.raises(SpecError, match="at most 8"):
        app_wrapper(processes=nine)
    assert app_wrapper(processes=nine, workload={"appwrapper": _MCAD})


def test_mcad_adds_up_what_each_container_asks_for() -> None:
    items = app_wrapper(workload={"appwrapper": _MCAD})["spec"]["resources"]["GenericItems"]
    (learner,) = items[1]["custompodresources"]
    assert learner["requests"]["cpu"] == "2"
    assert learner["limits"] == {"memory": "1Gi", "nvidia.com/gpu": "1"}


def test_nothing_is_wrapped_if_nothing_ends() -> None:
    only = {"board": {"command": ["x"], "lifecycle": "service"}}
    assert not [key for key in objects(processes=only) if key[0] == "AppWrapper"]
