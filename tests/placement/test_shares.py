"""A share of a machine belongs to the pod: it covers all containers beside the process, and the pool takes the pod."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symphony_charts.clusters.base import Cluster
from symphony_charts.clusters.gke_dispatcher import GKEDispatcher
from symphony_charts.errors import PlacementError, SpecError
from symphony_charts.placement.plan import Plan
from symphony_charts.placement.pools.readers import pools_of_data
from symphony_charts.prepare import Prepared, prepare_experiment
from symphony_charts.spec.data import from_data

POOLS = pools_of_data(
    {
        "kube_system": "elsewhere",
        "pools": [
            {"name": "std8", "machine_type": "n1-standard-8", "max_nodes": 12},
            {
                "name": "gpu",
                "machine_type": "n1-standard-16",
                "gpu": {"type": "nvidia-tesla-v100", "count": 4},
                "max_nodes": 4,
            },
        ],
    }
)
SIDECAR = {"spec": {"containers": [{"name": "proxy", "image": "b", "resources": {"requests": {"cpu": "500m"}}}]}}


def prepared(assign_to: dict[str, Any], *siblings: dict[str, Any], **group: Any) -> Prepared:
    processes = {"learner": {"assign_to": assign_to}} | {f"s{number}": one for number, one in enumerate(siblings)}
    data = {"name": "e", "image": "a:1", "groups": {"g": {"processes": processes, **group}}}
    return prepare_experiment(from_data(data), pools=POOLS, force=True)


def verdict(made: Prepared) -> str:
    plan = made.plan
    assert isinstance(plan, Plan)
    return plan.verdict


def test_siblings_that_ask_for_all_of_a_share_are_refused() -> None:
    with pytest.raises(SpecError, match="request all cpu of the share of"):
        prepared({"assign_to": "machine", "node_pool_name": "std8"}, {"requests": {"cpu": "8"}})


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(
    ("call", "settings_of_call"),
    [
        ("assign_to_machine", {"node_pool_name": "std8"}),
        ("assign_to_machine", {"node_pool_name": "std8", "process_per_machine": 3}),
        ("assign_to_gpu", {"node_pool_name": "gpu"}),
        ("assign_to_resource", {"cpu": 7, "memory_m": 4096}),
        ("assign_to_resource", {"cpu": 4, "gpu_count": 1}),
        ("assign_to_node_pool", {"node_pool_name": "std8", "cpu": 7}),
    ],
)
def test_every_call_gives_a_pod_that_its_pool_takes(call: str, settings_of_call: dict[str, Any], grouped: bool) -> None:
    experiment = Cluster.new("kubernetes").new_experiment("e", image="a:1")
    dispatcher = GKEDispatcher(POOLS)
    if grouped:
        group = experiment.new_process_group("g")
        process = group.new_process("learner")
        for number in range(5):
            group.new_process(f"s{number}")
    else:
        process = experiment.new_process("learner")
    getattr(dispatcher, call)(process, **settings_of_call)
    made = prepare_experiment(experiment.finish(), pools=POOLS, force=True)
    assert verdict(made) == "PROVEN"


@pytest.mark.parametrize("call", ["assign_to_resource", "assign_to_node_pool", "assign_to_gpu"])
def test_in_a_group_a_process_gets_exactly_the_numbers_that_it_asked_for(call: str) -> None:
    experiment = Cluster.new("kubernetes").new_experiment("e", image="a:1")
    group = experiment.new_process_group("g")
    process = group.new_process("learner")
    group.new_process("sibling")
    named = {"node_pool_name": "std8"} if call == "assign_to_node_pool" else {}
    getattr(GKEDispatcher(POOLS), call)(process, cpu=2.5, memory_m=512, **named, **GPU.get(call, {}))
    (learner, _) = container_resources(prepare_experiment(experiment.finish(), pools=POOLS, force=True))
    assert (learner["requests"]["cpu"], learner["requests"]["memory"]) == ("2.5", "512Mi")
    assert learner["limits"].get("memory", "512Mi") == "512Mi"


GPU: dict[str, dict[str, Any]] = {"assign_to_gpu": {"gpu_count": 1}}


def container_resources(made: Prepared) -> list[Any]:
    (job,) = (item for item in made.objects if item["kind"] == "Job")
    spec: Any = job["spec"]
    return [container["resources"] for container in spec["template"]["spec"]["containers"]]


def test_a_share_is_a_whole_number_of_processes() -> None:
    process = Cluster.new("kubernetes").new_experiment("e", image="a:1").new_process("learner")
    with pytest.raises(SpecError, match=r"process_per_machine is 2\.5"):
        GKEDispatcher(POOLS).assign_to_machine(process, node_pool_name="std8", process_per_machine=2.5)  # type: ignore[arg-type]


def test_a_grouped_process_that_names_no_pool_goes_to_the_pool_of_its_group() -> None:
    experiment = Cluster.new("kubernetes").new_experiment("e", image="a:1")
    group = experiment.new_process_group("g")
    dispatcher = GKEDispatcher(POOLS)
    dispatcher.assign_to_gpu(group.new_process("a"), node_pool_name="gpu")
    assert dispatcher.assign_to_resource(group.new_process("b"), cpu=1).pool == "gpu"
    with pytest.raises(SpecError, match="not k80"):
        dispatcher.assign_to_resource(group.new_process("c"), gpu_type="k80")


@given(
    parts=st.integers(1, 8),
    asks=st.lists(st.sampled_from([{}, {"requests": {"cpu": "50m"}}, {"requests": {"memory": "64Mi"}}]), max_size=4),
    sidecar=st.booleans(),
)
@settings(max_examples=60)
def test_n_pods_of_an_nth_fill_a_machine_and_never_overflow(
    parts: int, asks: list[dict[str, Any]], sidecar: bool
) -> None:
    share = {"assign_to": "machine", "node_pool_name": "std8", "process_per_machine": parts}
    overlay = {"pod_overlay": SIDECAR} if sidecar else {}
    made = prepared(share, *asks, replicas=parts, **overlay)
    assert made.plan is not None
    assert [(use.pool.name, use.nodes) for use in made.plan.uses] == [("std8", 1)]


def test_an_experiment_that_is_dispatched_from_a_file_is_refused_by_launch_as_by_package(tmp_path: Path) -> None:
    pools = tmp_path / "pools.yaml"
    pools.write_text("pools:\n- {name: std8, machine_type: n1-standard-8, max_nodes: 1}\n")
    cluster = Cluster.new("kubernetes")
    experiment = cluster.new_experiment("e", image="a:1")
    group = experiment.new_process_group("g", replicas=2)
    GKEDispatcher(pools).assign_to_machine(group.new_process("learner"), node_pool_name="std8")
    with pytest.raises(PlacementError, match="cannot be scheduled"):
        cluster.launch(experiment, dry_run=True)
