"""All finite groups are one JobSet, which gets a new name for each change of a field."""

from __future__ import annotations

from typing import Any

from tests.chart.harness import chart_of, experiment_of, native_objects

_NAME = "an-experiment-with-a-rather-long-name"
_LONG = "a-process-whose-name-is-long-too"
_PROCESSES: dict[str, dict[str, object]] = {
    "learner": {"command": ["x"], "binds": "ps", "connects": "api"},
    _LONG: {"command": ["x"], "replicas": 3, "connects": "ps", "binds": "api"},
    "board": {"command": ["x"], "lifecycle": "service"},
}


def job_set(*sets: str, **said: object) -> dict[str, Any]:
    data: dict[str, object] = {"processes": _PROCESSES, "workload": {"kind": "jobset"}, **said}
    objects = native_objects(chart_of(experiment_of(name=_NAME, **data)), sets)
    (found,) = [item for (kind, _), item in objects.items() if kind == "JobSet"]
    return found


def test_the_set_ends_with_the_groups_that_say_so() -> None:
    spec = job_set(done_when=["learner"])["spec"]
    assert spec["successPolicy"] == {"operator": "All", "targetReplicatedJobs": ["learner"]}


def test_without_done_when_all_but_services_must_succeed() -> None:
    made = job_set()["spec"]
    members = {member["name"] for member in made["replicatedJobs"]}
    assert set(made["successPolicy"]["targetReplicatedJobs"]) == members - {"board"}
    alone = {name: process for name, process in _PROCESSES.items() if name != "board"}
    assert "successPolicy" not in job_set(processes=alone)["spec"]


def test_a_child_has_at_most_52_characters() -> None:
    made = job_set()
    names = [f"{made['metadata']['name']}-{member['name']}-0" for member in made["spec"]["replicatedJobs"]]
    assert max(map(len, names)) <= 52


def test_what_may_change_in_a_job_but_not_in_a_set_is_a_new_run() -> None:
    late = {**_PROCESSES, "learner": {**_PROCESSES["learner"], "deadline": 60}}
    made = [job_set(), job_set("groups.learner.retries=3"), job_set(processes=late), job_set(done_when=["learner"])]
    assert len({item["metadata"]["name"] for item in made}) == len(made)
