"""Workloads that keep running after an experiment is done, and those that a failure ends, kind by kind."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import pytest

from symphony_charts.chart.release import merge
from symphony_charts.errors import SpecError
from symphony_charts.kinds.base import is_conductor, is_service
from symphony_charts.kinds.registry import KINDS, failure_difference, runs_on
from symphony_charts.prepare import prepare
from symphony_charts.spec.files import read
from symphony_charts.spec.pods import find_process, pods_of, pods_that_end
from tests.chart.harness import built_of, experiment_of
from tests.spec.drawn_experiments import Drawn, draw

_PROCESSES: dict[str, dict[str, Any]] = {
    "learner": {"command": ["x"]},
    "actor": {"command": ["x"]},
    "judge": {"command": ["x"]},
    "store": {"command": ["x"], "lifecycle": "service"},
    "board": {"command": ["x"], "lifecycle": "service", "exposes": "web"},
}
_KUEUE = {"kind": "jobs", "gang": "kueue", "queue": "q"}
_KINDS: list[tuple[dict[str, str], list[str], list[str]]] = [
    ({"kind": "jobs"}, ["learner"], ["board"]),
    ({"kind": "jobs"}, [], ["board"]),
    (_KUEUE, ["learner"], ["actor", "judge", "store", "board"]),
    ({"kind": "jobset"}, ["learner"], ["board"]),
    ({"kind": "jobset"}, ["learner", "actor"], ["board"]),
    ({"kind": "appwrapper"}, ["learner"], ["actor", "judge", "board"]),
    ({"kind": "volcano"}, ["learner"], ["board"]),
    ({"kind": "volcano"}, ["learner", "actor"], ["judge", "store", "board"]),
    ({"kind": "volcano"}, [], ["board"]),
    ({"kind": "volcano"}, ["learner", "actor", "judge"], ["board"]),
]


@pytest.mark.parametrize(("workload", "done", "left"), _KINDS)
def test_what_runs_on_follows_from_the_kind(workload: dict[str, str], done: list[str], left: list[str]) -> None:
    chart = built_of(experiment_of(processes=_PROCESSES, workload=workload, done_when=done))
    assert sorted(group for group, _ in runs_on(chart, chart.values)) == sorted(left)


def test_a_group_without_replicas_does_not_run_on() -> None:
    chart = built_of(experiment_of(processes=_PROCESSES))
    values = merge(chart.values, {"groups": {"board": {"replicas": 0}}})
    assert runs_on(chart, values) == []


def test_operator_v0_removes_the_pods_of_its_job_unless_it_cleans_nothing() -> None:
    processes = {"coordinator": {"command": ["x"]}, "collector": _PROCESSES["store"], "board": _PROCESSES["board"]}
    for policy, left in (("All", ["board"]), ("None", ["board", "collector"])):
        workload = {"kind": "dijob", "dijob": {"operator": "v0", "clean_pod_policy": policy}}
        chart = built_of(experiment_of(processes=processes, workload=workload))
        assert [group for group, _ in runs_on(chart, chart.values)] == left


def test_a_service_in_a_pod_that_ends_does_not_run_on() -> None:
    chart = built_of(experiment_of(groups={"pair": {"processes": _PROCESSES}}))
    assert runs_on(chart, chart.values) == []


@pytest.mark.parametrize(
    ("kind", "on_failure", "differs"),
    [
        ("jobs", "stop", ""),
        ("jobs", "continue", ""),
        ("appwrapper", "stop", "stops a local run; on kind appwrapper, other groups continue"),
        ("jobset", "stop", ""),
        ("jobset", "continue", "stops the other groups on kind jobset, but not in a local run"),
        ("volcano", "stop", ""),
        ("dijob", "stop", ""),
    ],
)
def test_what_one_failure_ends_is_the_same_or_said(kind: str, on_failure: str, differs: str) -> None:
    processes = {name: process for name, process in _PROCESSES.items() if "lifecycle" not in process}
    experiment = experiment_of(processes=processes, workload={"kind": kind}, on_failure=on_failure)
    said = failure_difference(experiment)
    assert (differs in said, bool(said)) == (True, bool(differs))


def test_where_there_is_one_pod_nothing_differs() -> None:
    assert failure_difference(experiment_of(processes={"a": {"command": ["x"]}})) == ""


def _alive_after_the_end(objects: Sequence[Mapping[str, Any]], services: Set[str]) -> set[str]:
    """Return the groups of `services` that no conductor, JobSet, Volcano Job or Workflow of these objects ends."""
    ended: set[str] = set()
    for item in objects:
        if is_conductor(item) and item["kind"] == "Job":
            *deciding, beside = " ".join(item["spec"]["template"]["spec"]["containers"][0]["args"][4:]).split("--")
            assert not set(beside.split()) & set(" ".join(deciding).split())
            ended |= set(beside.split())
    alive = set()
    for item in objects:
        if item["kind"] == "StatefulSet" or (item["kind"] == "Job" and is_service(item) and _name(item) not in ended):
            alive.add(item["metadata"]["labels"]["symph.dev/group"])
        if item["kind"] == "JobSet":
            members = {member["name"]: member["template"] for member in item["spec"]["replicatedJobs"]}
            targets = item["spec"].get("successPolicy", {}).get("targetReplicatedJobs", [*members])
            served = {_group(each) for each in members.values() if is_service(each)}
            # A set ends with its targets; a service among them never does.
            alive |= served if any(is_service(members[target]) for target in targets) else set()
        if item["apiVersion"] == "batch.volcano.sh/v1alpha1":
            spec = item["spec"]
            completes = {"event": "TaskCompleted", "action": "CompleteJob"}
            ends = spec.get("minSuccess") or [task for task in spec["tasks"] if completes in task.get("policies", ())]
            alive |= set() if ends else {task["name"] for task in spec["tasks"]} & services
        if item["kind"] == "WorkflowTemplate":
            alive |= services - _removed_by_workflow(item)
    rules = [rule for item in objects if item["kind"] == "Role" for rule in item["rules"] if "resourceNames" in rule]
    assert ended <= {name for rule in rules if "patch" in rule["verbs"] for name in rule["resourceNames"]}
    return alive


def _removed_by_workflow(item: Mapping[str, Any]) -> set[str]:
    """Return the groups whose Jobs a workflow deletes when its run is over, by an exit hook or a last task."""
    templates = {template["name"]: template for template in item["spec"]["templates"]}
    removed: set[str] = set()
    for task in templates["experiment"]["dag"]["tasks"]:
        last = task.get("hooks", {}).get("exit", {}).get("template") or (task["name"] == "rest" and "rest")
        for flag in templates[last]["resource"]["flags"] if last else ():
            if found := re.search(r"symph.dev/group in \((.*)\)", flag):
                removed |= set(found[1].split(","))
    return removed


def _name(item: Mapping[str, Any]) -> str:
    return str(item["metadata"]["name"])


def _group(item: Mapping[str, Any]) -> str:
    return str(item["metadata"]["labels"]["symph.dev/group"])


_CASES = int(os.environ.get("SYMPH_SOAK") or 40)


@pytest.mark.parametrize("kind", ["jobs", "jobset", "appwrapper", "volcano", "argo", "dijob"])
def test_what_is_alive_after_the_end_of_a_drawn_experiment_follows_from_the_spec(kind: str, tmp_path: Path) -> None:
    drawn = (each.data for each in draw(int(os.environ.get("SYMPH_SEED") or 1), tmp_path))
    ends = 0
    for data in itertools.islice(drawn, _CASES):
        spec = Drawn(data={**data, "workload": {"kind": kind}}).write(tmp_path)
        try:
            prepared = prepare(read(spec), force=True)
        except SpecError:
            continue
        pods = pods_of(prepared.experiment)
        done = {find_process(prepared.experiment, name).pod for name in prepared.experiment.done_when}
        deciding = [pod for name, pod in pods.items() if pod.is_finite and (name in done or not done)]
        if deciding and not any(pod.settings.replicas for pod in deciding):
            continue
        can_end = deciding and KINDS[kind].ends_services(prepared.experiment)
        of_run = pods_that_end(prepared.experiment) if can_end else set()
        services = {name for name, pod in pods.items() if not pod.is_finite and pod.settings.replicas}
        assert _alive_after_the_end(prepared.objects, services) == services - of_run, data
        ends += bool(of_run)
    # Few drawn experiments fit the roles of a DIJob.
    assert ends > _CASES / (20 if kind == "dijob" else 10)
