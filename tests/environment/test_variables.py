"""The variables of a process: names, sources, and the conversion of a backend's answers into an environment."""

from __future__ import annotations

from symphony_charts.spec.environment import (
    Address,
    Fact,
    Variable,
    interpret,
    pod_order,
    shared_environment,
    shared_variables,
    variables_of,
)
from symphony_charts.spec.pods import ProcessRef, Service
from symphony_charts.spec.sources import EnvSource
from symphony_charts.spec.variable_names import RESERVED, is_ours, service_variable

BINDER = ProcessRef("replay", "replay")
REPLAY = Service(name="replay-server", port=7000, listener=BINDER, is_bound=True, is_exposed=False)
ADDRESS = Address(host="h", hosts=("h0", "h1"), port=7000)
ANSWERS = {fact: f"<{fact.name}>" for fact in Fact}


def test_whoever_dials_a_service_is_told_where_it_is_and_alone_its_replicas() -> None:
    listed = variables_of("x", ProcessRef("a", "a"), [REPLAY], connects=["replay-server"])
    told = interpret(listed, ANSWERS, {"replay-server": ADDRESS})
    assert {name: value for name, value in told.items() if "REPLAY" in name} == {
        "SYMPH_REPLAY_SERVER_HOST": "h",
        "SYMPH_REPLAY_SERVER_PORT": "7000",
        "SYMPH_REPLAY_SERVER_ADDR": "h:7000",
        "SYMPH_REPLAY_SERVER_HOSTS": "h0:7000,h1:7000",
    }
    others = interpret(variables_of("x", ProcessRef("a", "a"), [REPLAY]), ANSWERS, {"replay-server": ADDRESS})
    assert told.keys() - others.keys() == {"SYMPH_REPLAY_SERVER_HOSTS"}


def test_whoever_binds_a_service_is_told_what_it_can_bind() -> None:
    told = interpret(variables_of("x", BINDER, [REPLAY]), ANSWERS, {"replay-server": ADDRESS})
    assert told["SYMPH_REPLAY_SERVER_HOST"] == told["SYMPH_REPLAY_SERVER_BIND_HOST"] == "<ADDRESS>"
    assert told["SYMPH_REPLAY_SERVER_ADDR"] == "<ADDRESS>:7000"


def test_a_replica_whose_port_moved_listens_on_its_own() -> None:
    moved = Address(host="h", hosts=("h", "h"), port=8000, ports=(8000, 8001))
    told = interpret(variables_of("x", BINDER, [REPLAY]), ANSWERS, {"replay-server": moved}, index=1)
    assert told["SYMPH_REPLAY_SERVER_PORT"] == "8001"
    assert told["SYMPH_REPLAY_SERVER_HOSTS"] == "h:8000,h:8001"


def test_a_later_variable_takes_the_place_of_an_earlier_one() -> None:
    source = EnvSource(config="c", key="k")
    listed = [Variable("A", "1"), Variable("A", source), Variable("B", "2"), Variable("B", Fact.RUN)]
    assert interpret(listed, {Fact.RUN: None}, {}) == {"A": source}


def test_what_is_shared_is_what_everybody_is_told() -> None:
    shared = shared_environment({"replay-server": ADDRESS})
    assert list(shared) == [name for name, _ in shared_variables(["replay-server"])]
    whole = interpret(variables_of("x", ProcessRef("a", "a"), [REPLAY]), ANSWERS, {"replay-server": ADDRESS})
    assert shared.items() <= whole.items()


def test_every_name_of_the_list_is_known_as_ours() -> None:
    names = {name for name, _ in variables_of("x", BINDER, [REPLAY])}
    assert all(map(is_ours, names))
    assert names > RESERVED
    assert not is_ours("LR")
    assert service_variable("a-b", "BIND_HOST") == "SYMPH_A_B_BIND_HOST"


def test_references_come_behind_what_they_refer_to() -> None:
    assert pod_order({"B": "1", "A": "$(B)", "C": {"fieldRef": "x"}, "D": None}) == ["B", "C", "D", "A"]
    ours = {"A_URL": "tcp://$(SYMPH_X_ADDR)", "SYMPH_X_ADDR": "$(SYMPH_X_BIND_HOST):7000"}
    assert pod_order(ours) == ["SYMPH_X_ADDR", "A_URL"]


def test_addresses_known_to_be_ipv6_have_brackets() -> None:
    address = Address(host="fd00::1", hosts=("fd00::1", "h1"), port=7000)
    assert address.text("ADDR") == "[fd00::1]:7000"
    assert address.text("HOSTS") == "[fd00::1]:7000,h1:7000"
    assert address.text("HOST") == "fd00::1"
