"""First allocations equal Symphony's ports; later changes of services keep existing ports."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from symphony_charts.spec.builder.experiment import ExperimentSpec
from symphony_charts.spec.data import from_data
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import allocate, pins_of, pods_that_end
from tests.chart.strategies import experiments


def ports(experiment: Experiment, pinned: dict[str, int] | None = None) -> dict[str, int]:
    return {service.name: service.port for service in allocate(experiment, pinned)}


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


_RUN = {"command": ["x"], "connects": ["a"]}
_A: dict[str, Any] = {"command": ["x"], "lifecycle": "service", "binds": "a"}
_SHOWN = {**_A, "exposes": "web"}
_STAYS = {**_A, "until": "uninstall"}


@pytest.mark.parametrize(
    ("processes", "ended"),
    [
        ({"run": _RUN, "a": _A}, {"a"}),
        ({"run": {"command": ["x"]}, "a": _A}, {"a"}),
        ({"run": {"command": ["x"]}, "a": _SHOWN}, set()),
        ({"run": _RUN, "a": _SHOWN}, {"a"}),
        ({"run": {"command": ["x"]}, "a": {**_SHOWN, "until": "run"}}, {"a"}),
        ({"run": _RUN, "a": _STAYS}, set()),
        # A service of the run connects to `a`, or one that stays does.
        ({"run": {"command": ["x"]}, "a": _SHOWN, "b": {**_A, "binds": "b", "connects": ["a"]}}, {"a", "b"}),
        ({"run": {"command": ["x"]}, "a": _SHOWN, "b": {**_STAYS, "binds": "b", "connects": ["a"]}}, set()),
        # Without a finite process a run has no end.
        ({"a": _A, "b": {**_A, "binds": "b", "connects": ["a"]}}, set()),
        ({"a": {**_A, "until": "run"}, "b": {**_A, "binds": "b"}}, {"a"}),
    ],
)
def test_services_end_with_the_run_unless_only_the_outside_connects_to_them(
    processes: dict[str, Any], ended: set[str]
) -> None:
    assert pods_that_end(from_data({"name": "x", "processes": processes})) == ended


def test_a_group_with_a_process_that_ends_is_itself_the_run() -> None:
    group = {"processes": {"run": _RUN, "a": _A}}
    assert pods_that_end(
        from_data({"name": "x", "groups": {"both": group}, "processes": {"b": {**_A, "binds": "b"}}})
    ) == {"b"}


@given(experiments())
@settings(max_examples=50, deadline=None)
def test_every_connect_meets_one_bound_service_and_pins_change_nothing(data: dict[str, Any]) -> None:
    experiment = from_data(data)
    services = allocate(experiment)
    assert allocate(experiment, pins_of(services)) == services
    names = [service.name for service in services if service.is_bound]
    assert {name for process in experiment.processes.values() for name in process.connects} <= set(names)
    assert len(names) == len(set(names))
