"""Ports are Symphony's the first time, and stay what they were when services come and go."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from symphony_charts.errors import SpecError
from symphony_charts.spec.builder.experiment import ExperimentSpec
from symphony_charts.spec.data import from_data
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.services import allocate, pins_of
from tests.spec.strategies import experiments


def ports(experiment: Experiment, pinned: dict[str, int] | None = None) -> dict[str, int]:
    return {service.name: service.port for service in allocate(experiment, pinned)}


def surreal() -> Experiment:
    """Surreal with two agents and one eval, said with Symphony's verbs."""
    exp = ExperimentSpec("first-experiment", owner="foobar", secrets=["~/.mujoco/mjkey.txt"])
    nonagent = exp.new_process_group("nonagent")
    roles = ("learner", "replay", "ps", "tensorboard", "tensorplex", "loggerplex")
    learner, replay, ps, tensorboard, tensorplex, loggerplex = (
        nonagent.new_process(role, container_image="u:1", args=[f"--role {role}"]) for role in roles
    )
    actors = [exp.new_process(name, container_image="u:1", args=["x"]) for name in ("agent-0", "agent-1", "eval-0")]
    for actor in actors:
        actor.connects(["ps-frontend", "collector-frontend"])
    ps.binds("ps-frontend")
    ps.binds("ps-backend")
    ps.connects("parameter-publish")
    replay.binds(["collector-frontend", "sampler-frontend", "collector-backend", "sampler-backend"])
    learner.binds("parameter-publish")
    learner.binds("prefetch-queue")
    learner.connects("sampler-frontend")
    tensorplex.binds("tensorplex")
    loggerplex.binds("loggerplex")
    for process in [learner, replay, ps, *actors]:
        process.connects("tensorplex")
        process.connects("loggerplex")
    tensorboard.exposes({"tensorboard": 6006})
    return exp.finish(for_cluster=True)


def test_the_surreal_topology_has_the_ports_that_it_always_had() -> None:
    experiment = surreal()
    assert experiment.name == "foobar-first-experiment"
    assert list(ports(experiment).items()) == [
        ("tensorboard", 6006),
        ("parameter-publish", 7000),
        ("prefetch-queue", 7001),
        ("collector-frontend", 7002),
        ("sampler-frontend", 7003),
        ("collector-backend", 7004),
        ("sampler-backend", 7005),
        ("ps-frontend", 7006),
        ("ps-backend", 7007),
        ("tensorplex", 7008),
        ("loggerplex", 7009),
    ]


def test_exposed_services_come_before_bound_ones() -> None:
    """Symphony's test_kube_topdown: tensorboard is exposed last and numbered first."""
    exp = ExperimentSpec("x")
    group = exp.new_process_group("group")
    group.new_process("proc1").binds("myserver")
    group.new_process("proc2").connects("myserver")
    for index in range(8):
        exp.new_process(f"agent{index}").connects("myserver")
    exp.new_process("tb").exposes("tensorboard")
    assert ports(exp.finish()) == {"tensorboard": 7000, "myserver": 7001}


def test_the_order_of_declaration_decides_across_groups_and_lone_processes() -> None:
    exp = ExperimentSpec("x")
    exp.new_process("first").binds("one")
    exp.new_process_group("g").new_process("second").binds("two")
    assert ports(exp.finish()) == {"one": 7000, "two": 7001}


def bound(*services: str) -> Experiment:
    return from_data({"name": "x", "processes": {"a": {"binds": list(services)}}})


def test_a_new_service_renumbers_nothing() -> None:
    before = ports(bound("b", "c"))
    assert ports(bound("a", "b", "c"), before) == {"a": 7002, "b": 7000, "c": 7001}


def test_a_pin_outside_the_range_or_on_a_fixed_port_is_forgotten() -> None:
    experiment = from_data({"name": "x", "processes": {"a": {"binds": [{"a": 7000}, "b", "c"]}}})
    assert ports(experiment, {"b": 7000, "c": 80}) == {"a": 7000, "b": 7001, "c": 7002}


def test_bind_and_expose_of_one_name_are_one_service() -> None:
    experiment = from_data({"name": "x", "processes": {"a": {"binds": {"tb": 6006}, "exposes": "tb"}}})
    (service,) = allocate(experiment)
    assert (service.port, service.is_bound, service.is_exposed) == (6006, True, True)


def test_a_range_that_is_used_up_is_refused() -> None:
    with pytest.raises(SpecError, match="port"):
        from_data({"name": "x", "port_range": [7000, 7001], "processes": {"a": {"binds": ["a", "b", "c"]}}})


@given(experiments())
@settings(max_examples=50, deadline=None)
def test_allocation_with_its_own_pins_changes_nothing(data: dict[str, Any]) -> None:
    experiment = from_data(data)
    services = allocate(experiment)
    assert allocate(experiment, pins_of(services)) == services


@given(experiments())
@settings(max_examples=50, deadline=None)
def test_every_connect_meets_one_bound_service(data: dict[str, Any]) -> None:
    experiment = from_data(data)
    names = [service.name for service in allocate(experiment) if service.is_bound]
    dialled = {name for process in experiment.processes.values() for name in process.connects}
    assert dialled <= set(names)
    assert len(names) == len(set(names))
