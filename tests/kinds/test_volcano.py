"""All finite groups are the tasks of one Volcano Job, which start together, and end according to `done_when`."""

from __future__ import annotations

from typing import Any

import pytest

from symphony_charts.errors import SpecError
from tests.chart.harness import chart_of, experiment_of, native_objects

_NAME = "an-experiment-with-a-rather-long-name"
_LONG = "a-process-whose-name-is-long-too"
_PROCESSES: dict[str, dict[str, object]] = {
    "learner": {"command": ["x"], "binds": "ps", "connects": "api"},
    _LONG: {"command": ["x"], "replicas": 3, "connects": "ps", "binds": "api"},
    "board": {"command": ["x"], "lifecycle": "service"},
}


def job(*sets: str, workload: dict[str, object] | None = None, **said: object) -> dict[str, Any]:
    data: dict[str, object] = {"processes": _PROCESSES, "name": _NAME, **said}
    chart = chart_of(experiment_of(**data, workload={"kind": "volcano", **(workload or {})}))
    (found,) = [item for (kind, _), item in native_objects(chart, sets).items() if kind == "Job"]
    return found


def tasks(item: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {task["template"]["metadata"]["labels"]["symph.dev/group"]: task for task in item["spec"]["tasks"]}


def policies(item: dict[str, Any], group: str) -> dict[str, str]:
    said = tasks(item)[group]["policies"]
    return {event: one["action"] for one in said for event in one.get("events", [one.get("event")])}


def test_the_name_of_a_pod_fits_a_host_name() -> None:
    made = job()
    names = [f"{made['metadata']['name']}-{task['name']}-99999" for task in made["spec"]["tasks"]]
    assert max(map(len, names)) <= 63


def test_no_network_policy_of_the_controller_shuts_services_out() -> None:
    assert "--disable-network-policy" in job()["spec"]["plugins"]["svc"]


def test_plugins_of_the_user_stand_beside_ours() -> None:
    plugins = job(workload={"volcano": {"plugins": {"ssh": ["--ssh-key-file-path=/x"], "env": ["y"]}}})["spec"][
        "plugins"
    ]
    assert (plugins["ssh"], plugins["env"], "svc" in plugins) == (["--ssh-key-file-path=/x"], ["y"], True)


def test_one_group_that_is_done_ends_the_job() -> None:
    made = job(done_when=["learner"])
    assert policies(made, "learner")["TaskCompleted"] == "CompleteJob"
    assert "TaskCompleted" not in policies(made, _LONG)


def test_volcano_cannot_wait_for_two_groups_to_be_done() -> None:
    three = {**_PROCESSES, "more": {"command": ["x"]}}
    made = job(processes=three, done_when=["learner", "more"])
    assert "TaskCompleted" not in {event for group in tasks(made) for event in policies(made, group)}


def test_what_the_webhook_lets_nobody_change_is_a_new_run() -> None:
    made = [
        job(),
        job("workload.queue=q"),
        job("groups.learner.retries=1"),
        job(workload={"volcano": {"plugins": {"ssh": []}}}),
    ]
    assert len({item["metadata"]["name"] for item in made}) == len(made)


def test_another_gang_is_refused() -> None:
    with pytest.raises(SpecError, match="kind volcano makes its own gang"):
        job(workload={"gang": "kueue", "queue": "q"})
