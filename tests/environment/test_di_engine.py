"""The variables of a DIJob's pods: ranks over all finite processes, in order of declaration."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symphony_charts.integrations.dijob.settings import has_di_engine, node_variables, nodes_of, older_variables
from symphony_charts.spec.data import from_data
from tests.importers.dijob_operators import MAKERS

HOSTS = {"learner": ["l-0"], "data-collector": ["c-0", "c-1"]}


def test_ranks_go_on_from_pod_to_pod() -> None:
    assert node_variables("ns/x", "data-collector", 1, HOSTS, {}) == {
        "DI_JOB_ID": "ns/x",
        "DI_NODES": "l-0,c-0,c-1",
        "DI_DATA_COLLECTOR_NODES": "c-0,c-1",
        "DI_RANK": "2",
    }


def test_a_task_of_type_none_finds_all_tasks_of_that_type() -> None:
    hosts = {"a": ["a-0"], "learner": ["l-0"], "boss": ["b-0", "b-1"], "c": ["c-0"]}
    told = {pod: node_variables("x", pod, 0, hosts, {"boss": "collector"}) for pod in hosts}
    assert told["a"]["DI_A_NODES"] == told["c"]["DI_C_NODES"] == "a-0,c-0"
    assert (told["learner"]["DI_LEARNER_NODES"], told["boss"]["DI_BOSS_NODES"]) == ("l-0", "b-0,b-1")


def test_what_is_no_node_gets_nothing() -> None:
    assert node_variables("ns/x", "board", 0, HOSTS, {}) == {}


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), st.integers(1, 5), min_size=1))
def test_every_replica_finds_itself_at_its_rank(counts: dict[str, int]) -> None:
    hosts = {pod: [f"{pod}-{index}" for index in range(count)] for pod, count in counts.items()}
    seen = []
    for pod, count in counts.items():
        for index in range(count):
            env = node_variables("x", pod, index, hosts, {})
            assert env["DI_NODES"].split(",")[int(env["DI_RANK"])] == f"{pod}-{index}"
            seen.append(int(env["DI_RANK"]))
    assert seen == list(range(sum(counts.values())))


def test_nodes_are_what_ends_in_the_order_of_declaration() -> None:
    run = {"command": ["x"]}
    processes = {"learner": run, "board": {**run, "lifecycle": "service"}, "collector": run}
    assert nodes_of(from_data({"name": "x", "processes": processes})) == ["learner", "collector"]
    pair = {"pair": {"processes": {"a": run, "b": run}}}
    lone = {"learner": run}
    assert nodes_of(from_data({"name": "x", "processes": lone, "groups": pair})) == ["learner", "pair"]
    assert nodes_of(from_data({"name": "x", "groups": pair, "processes": lone})) == ["pair", "learner"]


def test_a_dijob_of_the_newer_operators_has_them_unasked() -> None:
    processes = {"learner": {"command": ["x"]}}
    jobs = {"name": "x", "processes": processes}
    of_kind = {**jobs, "workload": {"kind": "dijob"}}
    older = {**jobs, "workload": {"kind": "dijob", "dijob": {"operator": "v1.0"}}}
    asked = {**jobs, "compat": "di-engine"}
    assert [has_di_engine(from_data(one)) for one in (jobs, of_kind, older, asked)] == [False, True, False, True]


@pytest.mark.parametrize("topology", ["star", "mesh", "alone"])
def test_operator_v1_0_is_repeated_word_for_word(topology: Literal["star", "mesh", "alone"]) -> None:
    template = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
    engine = {"topology": topology, "parallelWorkers": 2}
    job = {"metadata": {"name": "job"}, "spec": {"minReplicas": 3, "engineFields": engine, "template": template}}
    dijob = {"operator": "v1.0", "topology": topology, "parallel_workers": 2}
    workload = {"kind": "dijob", "dijob": dijob}
    process = {"command": ["x"], "replicas": 3}
    experiment = from_data({"name": "job", "processes": {"worker": process}, "workload": workload})
    hosts = {"worker": [f"job-0-{rank}.job" for rank in range(3)]}
    for rank, pod in enumerate(MAKERS["v1.0.0"](job)["pods"]):
        told = {item["name"]: item["value"] for item in pod["spec"]["containers"][0]["env"]}
        del told["DI_SERVER_URL"]  # no server runs here
        assert older_variables(experiment, "worker", rank, hosts, {}, "job-0") == told


def test_operator_v0_tells_a_role_who_it_is_and_where_the_coordinator_and_the_server_are() -> None:
    processes = {"coordinator": {"command": ["x"], "binds": {"coordinator": 7001}}}
    workload = {"kind": "dijob", "dijob": {"operator": "v0"}}
    experiment = from_data({"name": "job", "processes": processes, "workload": workload})
    hosts, ports = {"coordinator": ["127.0.0.9"], "di-server": ["127.0.0.3"]}, {"coordinator": 7001, "di-server": 8080}
    assert older_variables(experiment, "coordinator", 0, hosts, ports, "job-coordinator") == {
        "COORDINATOR_PORT": "7001",
        "KUBERNETES_COORDINATOR_URL": "127.0.0.9:7001",
        "KUBERNETES_POD_NAME": "job-coordinator",
        "KUBERNETES_POD_NAMESPACE": "default",
        "KUBERNETES_SERVER_URL": "127.0.0.3:8080",
    }
