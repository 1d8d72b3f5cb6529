"""A DIJob contains all finite groups; replicas change within its run, any other change is another run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from symphony_charts.gitops.diff import Side, compare_sides
from symphony_charts.kinds.registry import opened
from symphony_charts.placement.fit.demand import demands_of
from symphony_charts.spec.model import Experiment
from tests.chart.harness import chart_of, experiment_of, native_objects
from tests.linting import lint
from tests.local.parity.compare import compare

RUN = {"command": ["x"]}
PROCESSES: dict[str, Any] = {
    "learner": {**RUN, "binds": "ps", "connects": "data", "requests": {"cpu": "2"}},
    "collector": {**RUN, "replicas": 2, "binds": "data", "connects": "ps"},
    "board": {**RUN, "lifecycle": "service", "connects": "data", "until": "uninstall"},
}
_LONG = "an-experiment-with-a-rather-long-name"


def made(processes: Mapping[str, Any] = PROCESSES, name: str = "exp", **said: object) -> Experiment:
    """Return an experiment of kind dijob; `said` are settings of `workload.dijob`."""
    return experiment_of(name=name, processes=processes, workload={"kind": "dijob", "dijob": said})


def objects(experiment: Experiment, *sets: str) -> list[dict[str, Any]]:
    return list(native_objects(chart_of(experiment), sets).values())


def job(experiment: Experiment, *sets: str) -> dict[str, Any]:
    (found,) = [item for item in objects(experiment, *sets) if item["kind"] == "DIJob"]
    return found


def name_of(*sets: str, operator: str = "v1.1") -> str:
    return str(job(made(operator=operator), *sets)["metadata"]["name"])


def sides(change: str) -> tuple[Side, Side]:
    """Return the objects before and after a change."""
    return Side(title="", objects=tuple(objects(made()))), Side(title="", objects=tuple(objects(made(), change)))


def test_tasks_are_what_ends_in_the_order_of_their_ranks() -> None:
    tasks = job(made())["spec"]["tasks"]
    assert [(one["name"], one["type"], one["replicas"]) for one in tasks] == [
        ("learner", "learner", 1),
        ("collector", "collector", 2),
    ]


def test_services_are_stateful_sets_beside_it() -> None:
    assert [item["metadata"]["name"] for item in objects(made()) if item["kind"] == "StatefulSet"] == ["r1-exp-board"]


def test_every_field_is_said_since_the_minimal_definition_has_no_defaults() -> None:
    assert set(job(made())["spec"]) == {"cleanPodPolicy", "priority", "preemptible", "backoffLimit", "tasks"}


def test_names_of_pods_are_labels_however_long_those_of_the_experiment_are() -> None:
    long = job(made({"a-process-of-25-letters-x": {**RUN, "replicas": 99999}}, name=_LONG))
    (task,) = long["spec"]["tasks"]
    assert len(f"{long['metadata']['name']}-{task['name']}-99998") <= 63
    assert len(f"di-{long['metadata']['name']}") <= 63


def test_a_task_is_called_as_the_process_since_variables_are_called_after_it() -> None:
    name = "collector-of-random-episodes-x"
    (task,) = job(made({name: RUN}, name=_LONG))["spec"]["tasks"]
    assert task["name"] == name


def test_more_replicas_are_announced_as_a_change_in_place() -> None:
    comparison = compare_sides(*sides("groups.collector.replicas=4"))
    (line,) = [line for line in comparison.lines if line.difference.kind == "DIJob"]
    assert (line.effect, comparison.outcome) == ("updated", "in place")
    assert line.why.startswith("in place: pods come or go")


def test_more_replicas_are_a_new_run_if_a_job_beside_it_has_their_addresses() -> None:
    board = {**RUN, "lifecycle": "service", "connects": "data"}
    names = {
        job(made({**PROCESSES, "board": board}), change)["metadata"]["name"]
        for change in ("groups.collector.replicas=3", "groups.collector.replicas=4")
    }
    assert len(names) == 2


def test_another_image_is_announced_as_a_new_run() -> None:
    changed = sides("groups.collector.containers.collector.image=other:2")
    (line,) = [line for line in compare_sides(*changed).lines if line.difference.kind == "DIJob"]
    assert (line.effect, line.why) == (
        "new run",
        "spec.tasks.collector.template.spec.containers.di-container.image changed",
    )


def test_services_find_pods_by_the_labels_that_the_operator_gives_them() -> None:
    (service,) = [item for item in objects(made()) if item["metadata"]["name"] == "r1-exp-ps"]
    assert service["spec"]["selector"] == {"diengine/job": name_of(), "diengine/task-name": "learner"}


def test_replicas_are_addressed_in_the_domain_of_the_job() -> None:
    (learner, _) = job(made())["spec"]["tasks"]
    env = {one["name"]: one.get("value") for one in learner["template"]["spec"]["containers"][0]["env"]}
    hosts = env["SYMPH_DATA_HOSTS"].replace("$(SYMPH_RUN)", env["SYMPH_RUN"]).split(",")
    assert hosts == [f"{name_of()}-collector-{index}.di-{name_of()}:7001" for index in (0, 1)]


def test_an_aggregator_outlives_the_release_that_brought_it() -> None:
    roles = {"coordinator": RUN, "aggregator": {**RUN, "lifecycle": "service"}}
    (config,) = [item for item in objects(made(roles, operator="v0")) if item["kind"] == "AggregatorConfig"]
    assert config["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    assert (config["metadata"]["namespace"], config["metadata"]["name"]) == ("di-system", "aggregator-config")


def test_the_roles_of_operator_v0_are_in_the_job_also_where_they_serve() -> None:
    roles = {"coordinator": RUN, "collector": {**RUN, "lifecycle": "service"}}
    spec = job(made(roles, operator="v0"))["spec"]
    assert spec["collector"]["template"]["spec"]["restartPolicy"] == "Always"
    assert spec["coordinator"]["template"]["spec"]["restartPolicy"] == "Never"


def test_the_plan_counts_the_pods_of_every_task() -> None:
    demands = demands_of(objects(made()))
    assert sum(one.count for one in demands for name, _ in one.members if name in ("learner", "collector")) >= 3


@pytest.mark.parametrize("operator", ["v1.1", "v1.1.0"])
def test_processes_see_on_one_machine_what_they_see_in_a_task(operator: str, tmp_path: Path) -> None:
    result = compare(made(operator=operator), {}, tmp_path, probes=False)
    assert (result.processes, result.differences) == (4, ())


@pytest.mark.parametrize(("operator", "name"), [("v1.0", "worker"), ("v0", "coordinator")])
def test_what_older_operators_add_to_manifests_is_no_difference(operator: str, name: str, tmp_path: Path) -> None:
    result = compare(made({name: {**RUN, "replicas": 1}}, operator=operator), {}, tmp_path, probes=False)
    assert (result.processes, result.differences) == (1, ())


@pytest.mark.parametrize("kind", ["jobs", "jobset", "volcano", "appwrapper"])
def test_on_other_kinds_they_see_their_ranks_too(kind: str, tmp_path: Path) -> None:
    experiment = experiment_of(processes=PROCESSES, workload={"kind": kind}, compat="di-engine")
    assert compare(experiment, {}, tmp_path, probes=False).differences == ()


@pytest.mark.parametrize(
    ("process", "rule"),
    [
        ({"retries": 2}, "dijob-retries"),
        ({"restart": "on-failure"}, "dijob-restart"),
        ({"labels": {"a": "b"}}, "dijob-labels"),
        ({"annotations": {"a": "b"}}, "dijob-labels"),
        ({"env": {"DI_RANK": "3"}}, "dijob-env"),
    ],
)
def test_what_the_operator_ignores_is_warned_of(process: dict[str, object], rule: str) -> None:
    experiment = made({"learner": {**RUN, **process}})
    assert rule in {finding.rule for finding in lint(chart_of(experiment))}


def test_a_field_of_pods_that_the_operator_does_not_know_is_found() -> None:
    experiment = made({"learner": {**RUN, "pod_overlay": {"spec": {"schedulingGates": [{"name": "x"}]}}}})
    found = [one for one in lint(chart_of(experiment)) if one.rule == "schema"]
    assert any("schedulingGates" in one.what for one in found)


def test_a_job_is_opened_into_its_tasks_with_their_ranks() -> None:
    tasks = [one for one in opened(objects(made())) if one["kind"] == "Job"]
    ranks = [one["spec"]["template"]["metadata"]["annotations"]["diengine/rank"] for one in tasks]  # type: ignore[index]  # parsed
    assert ranks == ["0", "1"]
