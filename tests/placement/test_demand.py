"""Requests of rendered objects to nodes, and those that no model of a scheduler covers."""

from __future__ import annotations

from typing import Any

import pytest

from symphony_charts.placement.fit.demand import Demand, demands_of
from symphony_charts.prepare import prepare_experiment
from symphony_charts.spec.data import from_data


def of_processes(**processes: dict[str, Any]) -> list[Demand]:
    records = {name: {"command": ["x"], **process} for name, process in processes.items()}
    return demands_of(prepare_experiment(from_data({"name": "e", "image": "a:1", "processes": records})).objects)


def test_what_is_reserved_and_the_machine_that_is_asked_for_count() -> None:
    process = {"requests": {"cpu": "8"}, "reserve": True, "capabilities": {"instance-type": "n1"}}
    (demand,) = of_processes(a=process)
    assert demand.shape.amount("cpu") == 7900
    assert dict(demand.shape.selector) == {"node.kubernetes.io/instance-type": "n1"}


def test_a_container_that_an_overlay_adds_counts() -> None:
    proxy = {"name": "proxy", "image": "b:1", "resources": {"requests": {"cpu": "12"}}}
    (demand,) = of_processes(a={"requests": {"cpu": "1"}, "pod_overlay": {"spec": {"containers": [proxy]}}})
    assert demand.shape.amount("cpu") == 13000


def test_tolerations_are_those_of_the_pod_and_no_others() -> None:
    overlay = {"spec": {"tolerations": [{"key": "team", "operator": "Exists"}]}}
    (demand,) = of_processes(a={"tolerations": [{"key": "own", "operator": "Exists"}], "pod_overlay": overlay})
    assert [toleration.key for toleration in demand.shape.tolerations] == ["team"]


def test_a_text_that_looks_like_a_variable_is_a_text() -> None:
    term = {"labelSelector": {}, "topologyKey": "${ZONE}"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    (demand,) = of_processes(a={"pod_overlay": {"spec": {"affinity": affinity}}})
    assert [term.key for term in demand.shape.anti_affinity] == ["${ZONE}"]


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ({"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]}, "resourceClaims"),
        ({"schedulingGates": [{"name": "x"}]}, "schedulingGates"),
        ({"runtimeClassName": "gvisor"}, "gvisor"),
        ({"nodeName": "n1"}, "n1"),
        ({"schedulerName": "other"}, "other"),
        ({"os": {"name": "windows"}}, "windows"),
    ],
)
def test_what_the_model_does_not_know_is_named(spec: dict[str, Any], named: str) -> None:
    (demand,) = of_processes(a={"pod_overlay": {"spec": spec}})
    assert named in demand.shape.unknown[0]


def test_pods_that_take_ports_of_their_node_are_told_apart_by_them() -> None:
    host = {"spec": {"hostNetwork": True}}
    demands = of_processes(a={"binds": {"a": 1}, "pod_overlay": host}, b={"binds": {"b": 2}, "pod_overlay": host})
    assert ports(demands) == {("a", "TCP", 1, ""), ("b", "TCP", 2, "")}


def ports(demands: list[Demand]) -> set[tuple[str, str, int, str]]:
    return {(name, *port) for demand in demands for name, _ in demand.members for port in demand.shape.ports}


def pod(cpu: str) -> dict[str, object]:
    return {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}}


def test_a_jobset_makes_as_many_pods_as_its_jobs_do_together() -> None:
    job = {"name": "w", "replicas": 3, "template": {"spec": {"parallelism": 2, "completions": 2, "template": pod("1")}}}
    (demand,) = demands_of([{"kind": "JobSet", "metadata": {"name": "j"}, "spec": {"replicatedJobs": [job]}}])
    assert (demand.name, demand.count, demand.shape.amount("cpu")) == ("w", 6, 1000)


def test_what_is_wrapped_is_counted() -> None:
    job = {"kind": "Job", "metadata": {"name": "j"}, "spec": {"parallelism": 4, "completions": 2, "template": pod("2")}}
    wrapper = {"kind": "AppWrapper", "metadata": {"name": "a"}, "spec": {"components": [{"template": job}]}}
    (demand,) = demands_of([{"kind": "List", "items": [wrapper]}])
    assert (demand.name, demand.count) == ("j", 2)


def test_volcanos_tasks_are_counted_apart() -> None:
    tasks = [{"name": n, "replicas": r, "template": pod(c)} for n, r, c in (("a", 1, "1"), ("b", 2, "2"))]
    found = demands_of([{"kind": "Job", "metadata": {"name": "v"}, "spec": {"tasks": tasks}}])
    assert sorted((demand.name, demand.count) for demand in found) == [("a", 1), ("b", 2)]


def test_objects_without_pods_ask_for_nothing() -> None:
    assert demands_of([{"kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": []}}]) == []
