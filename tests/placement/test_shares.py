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
    with pytest.raises(SpecError, match="asks for all of the pod's share of cpu"):
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
        ("assign_to_node_pool", {"node_pool_name": "std8", "cpu": 7.4}),
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
