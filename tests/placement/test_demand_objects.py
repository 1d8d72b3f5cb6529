"""Objects of a chart must ask for what the experiment asks for: two readings of one thing."""

from __future__ import annotations

from hypothesis import given

from symphony_charts.cluster.render import objects_of
from symphony_charts.placement.demand import Demand, demands_of
from symphony_charts.placement.demand_objects import demands_of_objects
from symphony_charts.spec.load import from_data
from tests.chart.strategies import experiments


def asked(demands: list[Demand]) -> dict[str, object]:
    return {
        name: (dict(demand.shape.requests), dict(demand.shape.selector), demand.shape.affinity, count)
        for demand in demands
        for name, count in demand.members
    }


@given(experiments())
def test_the_objects_of_a_chart_ask_for_what_the_experiment_asks_for(data: dict[str, object]) -> None:
    experiment = from_data(data)
    rendered, declared = demands_of_objects(objects_of(experiment)), demands_of(experiment)
    assert asked(rendered) == asked(declared)
    # Under hostNetwork a port that is given out automatically is known to the objects alone.
    assert ports(declared) <= ports(rendered)


def test_what_is_reserved_and_the_machine_that_is_asked_for_count_in_both() -> None:
    process = {"command": ["x"], "requests": {"cpu": "8"}, "reserve": True, "capabilities": {"instance-type": "n1"}}
    experiment = from_data({"name": "exp", "image": "busybox:1", "processes": {"a": process}})
    declared = demands_of(experiment)
    assert asked(demands_of_objects(objects_of(experiment))) == asked(declared)
    assert declared[0].shape.amount("cpu") == 7900
    assert dict(declared[0].shape.selector) == {"node.kubernetes.io/instance-type": "n1"}


def test_a_checkout_before_the_start_asks_for_something_too() -> None:
    process = {"command": ["x"], "requests": {"memory": "1Mi"}, "mounts": [{"volume": "code", "at": "/code"}]}
    code = {"type": "git", "repository": "https://example.org/r.git"}
    experiment = from_data({"name": "e", "image": "a:1", "processes": {"a": process}, "volumes": {"code": code}})
    assert asked(demands_of(experiment)) == asked(demands_of_objects(objects_of(experiment)))


def test_pods_that_take_ports_of_their_node_are_told_apart_by_them() -> None:
    host = {"spec": {"hostNetwork": True}}
    processes = {
        name: {"command": ["x"], "binds": {name: port}, "pod_overlay": host} for name, port in (("a", 1), ("b", 2))
    }
    experiment = from_data({"name": "e", "image": "a:1", "processes": processes})
    assert ports(demands_of(experiment)) == {("a", "TCP", 1), ("b", "TCP", 2)}


def ports(demands: list[Demand]) -> set[tuple[str, str, int]]:
    return {(name, *port) for demand in demands for name, _ in demand.members for port in demand.shape.ports}


def pod(cpu: str) -> dict[str, object]:
    return {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}}


def test_a_jobset_makes_as_many_pods_as_its_jobs_do_together() -> None:
    job = {"name": "w", "replicas": 3, "template": {"spec": {"parallelism": 2, "completions": 2, "template": pod("1")}}}
    (demand,) = demands_of_objects([{"kind": "JobSet", "metadata": {"name": "j"}, "spec": {"replicatedJobs": [job]}}])
    assert (demand.name, demand.count, demand.shape.amount("cpu")) == ("w", 6, 1000)


def test_what_is_wrapped_is_counted() -> None:
    job = {"kind": "Job", "metadata": {"name": "j"}, "spec": {"parallelism": 4, "completions": 2, "template": pod("2")}}
    wrapper = {"kind": "AppWrapper", "metadata": {"name": "a"}, "spec": {"components": [{"template": job}]}}
    (demand,) = demands_of_objects([{"kind": "List", "items": [wrapper]}])
    assert (demand.name, demand.count) == ("j", 2)


def test_volcanos_tasks_are_counted_apart() -> None:
    tasks = [{"name": n, "replicas": r, "template": pod(c)} for n, r, c in (("a", 1, "1"), ("b", 2, "2"))]
    found = demands_of_objects([{"kind": "Job", "metadata": {"name": "v"}, "spec": {"tasks": tasks}}])
    assert sorted((demand.name, demand.count) for demand in found) == [("a", 1), ("b", 2)]


def test_objects_without_pods_ask_for_nothing() -> None:
    assert demands_of_objects([{"kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": []}}]) == []
