"""Faults of Symphony's dispatcher, by their number."""

from __future__ import annotations

import json
from typing import Any

import pytest

from symphony_charts.compat.kube import GKEDispatcher
from symphony_charts.errors import SymphError
from symphony_charts.placement.pools.files import read_pools_file
from tests.compat.bugs import container, pod, two
from tests.compat.conftest import EXAMPLES

CLOUDWISE = EXAMPLES / "pools" / "cloudwise.tf.json"
BIG, MIDDLE = "np-8cpu-30720mem-np", "np-2cpu-7680mem-np"


@pytest.fixture
def dispatcher() -> GKEDispatcher:
    return GKEDispatcher(CLOUDWISE)


def test_19_the_smallest_pool_that_fits_is_taken_whatever_the_order() -> None:
    data = json.loads(CLOUDWISE.read_text())
    pools = data["resource"]["google_container_node_pool"]
    data["resource"]["google_container_node_pool"] = dict(reversed(pools.items()))
    exp, learner, _ = two()
    GKEDispatcher(data).assign_to_resource(learner, cpu=1)
    assert MIDDLE in pod(exp, "learner")["nodeSelector"].values()


def test_20_what_a_node_keeps_for_itself_is_not_given_away(dispatcher: GKEDispatcher) -> None:
    exp, learner, _ = two()
    dispatcher.assign_to_resource(learner, cpu=1.99)
    assert BIG in pod(exp, "learner")["nodeSelector"].values()


def test_21_a_gpu_type_alone_means_one_of_them(dispatcher: GKEDispatcher) -> None:
    exp, learner, _ = two()
    dispatcher.assign_to_resource(learner, gpu_type="K80")
    assert "np-8cpu-53248mem-1k80-np" in pod(exp, "learner")["nodeSelector"].values()


def test_22_a_whole_machine_is_the_whole_of_what_it_offers_with_a_limit(dispatcher: GKEDispatcher) -> None:
    exp, learner, _ = two()
    decision = dispatcher.assign_to_machine(learner, node_pool_name=BIG)
    resources = container(exp, "learner")["resources"]
    assert int(resources["requests"]["memory"].removesuffix("Mi")) > 30720 * 0.7, decision
    assert "memory" in resources["limits"]


def test_23_shares_that_do_not_divide_and_more_than_a_machine_are_refused(dispatcher: GKEDispatcher) -> None:
    _, learner, _ = two()
    with pytest.raises(ValueError, match=r"\S"):
        dispatcher.assign_to_machine(learner, node_pool_name="np-8cpu-53248mem-1v100-np", process_per_machine=8)
    with pytest.raises(ValueError, match=r"\S"):
        dispatcher.assign_to_node_pool(learner, node_pool_name=BIG, gpu_count=1)


def test_23_a_request_that_no_node_of_the_pool_can_hold_is_a_no_of_the_planner(dispatcher: GKEDispatcher) -> None:
    from symphony_charts.prepare import prepare_experiment

    exp, learner, _ = two()
    try:
        dispatcher.assign_to_node_pool(learner, node_pool_name=BIG, cpu=64)
    except SymphError:
        return
    assert "NO" in str(prepare_experiment(exp.finish(), pools=read_pools_file(CLOUDWISE), force=True).plan)


def test_24_two_processes_of_one_group_cannot_go_to_two_pools(dispatcher: GKEDispatcher) -> None:
    from symphony_charts.compat.kube import KubeExperimentSpec

    exp = KubeExperimentSpec("rl")
    group = exp.new_process_group("g")
    first, second = (group.new_process(name, container_image="u:1") for name in ("a", "b"))
    dispatcher.assign_to_node_pool(first, process_group=group, node_pool_name=BIG)
    with pytest.raises(ValueError, match=r"\S"):
        dispatcher.assign_to_node_pool(second, process_group=group, node_pool_name=MIDDLE)


@pytest.mark.parametrize(
    "file", ["modern.tf", "modern.tf.json", "terraform.tfstate", "pools.yaml", "kubectl-nodes.json"]
)
def test_25_other_descriptions_of_a_cluster_are_read_too(file: str) -> None:
    dispatcher: Any = GKEDispatcher(EXAMPLES / "pools" / file)
    assert dispatcher.get_node_pools()
