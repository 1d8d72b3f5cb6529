"""The dispatcher's calls: Symphony's golden numbers under `formula="symphony"`, else the allocatable of real nodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from symphony_charts.clusters.gke_dispatcher import GKEDispatcher
from symphony_charts.errors import SpecError
from symphony_charts.spec.builder.experiment import ProcessGroupSpec, ProcessSpec

CLOUDWISE = Path(__file__).parents[2] / "examples/pools/cloudwise.tf.json"
CPU8, CPU2 = "np-8cpu-30720mem-np", "np-2cpu-7680mem-np"
V100 = "np-8cpu-53248mem-1v100-np"
EXCLUSIVE = {"key": "exclusive_workload", "operator": "Equal", "value": "exclusive", "effect": "NoExecute"}
NVIDIA = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}


@pytest.fixture(scope="module")
def dispatcher() -> GKEDispatcher:
    return GKEDispatcher(CLOUDWISE)


def cloudwise_pool(machine: str, cpu: int, memory_m: int, gpu: str = "", gpus: int = 0) -> dict[str, Any]:
    labels: dict[str, Any] = {"name": "pool", "cpu": cpu, "memory_m": memory_m}
    config: dict[str, Any] = {"machine_type": machine, "labels": labels, "taint": []}
    if gpu:
        labels |= {"gpu_type": gpu, "gpu_count": gpus}
        config["guest_accelerator"] = [{"type": gpu, "count": gpus}]
    pool = {"name": "pool", "autoscaling": {"min_node_count": 0, "max_node_count": 4}, "node_config": config}
    return {"resource": {"google_container_node_pool": {"pool": pool}}}


def asked(process: ProcessSpec) -> tuple[Any, Any, Any]:
    data: dict[str, Any] = process.to_data()
    requests = data.get("requests", {})
    return requests.get("memory"), requests.get("cpu"), data.get("gpus")


K80 = "nvidia-tesla-k80"
FOUR_GPUS = cloudwise_pool("n1-highmem-32", 32, 212992, K80, 4)
ONE_GPU = cloudwise_pool("n1-highmem-8", 8, 53248, K80, 1)


@pytest.mark.parametrize(
    ("source", "call", "settings", "pool", "expected", "tolerations"),
    [
        (CLOUDWISE, "machine", {"node_pool_name": CPU8}, CPU8, ("15360Mi", "7.4", None), [EXCLUSIVE]),
        (
            *(CLOUDWISE, "machine", {"node_pool_name": CPU8, "process_per_machine": 5}),
            *(CPU8, ("5120Mi", "1.48", None), [EXCLUSIVE]),
        ),
        (CLOUDWISE, "gpu", {"node_pool_name": V100}, V100, ("26624Mi", "7.4", 1), [EXCLUSIVE, NVIDIA]),
        (
            *(CLOUDWISE, "node_pool", {"node_pool_name": V100, "cpu": 2.5, "memory_m": 4096.7, "gpu_count": 1}),
            *(V100, ("4096Mi", "2.5", 1), [EXCLUSIVE, NVIDIA]),
        ),
        # The first larger pool, in the order of the file.
        (CLOUDWISE, "resource", {"cpu": 1.5}, CPU2, (None, "1.5", None), None),
        (CLOUDWISE, "resource", {"cpu": 2}, CPU8, (None, "2", None), None),
        (CLOUDWISE, "resource", {"gpu_type": "V100", "gpu_count": 1, "cpu": 7}, V100, (None, "7", 1), None),
        (CLOUDWISE, "resource", {}, CPU2, (None, None, None), None),
        (FOUR_GPUS, "gpu", {"node_pool_name": "pool"}, "pool", ("42598Mi", "7.85", 1), [NVIDIA]),
        # Symphony leaves GPUs of these machines unused.
        (
            *(FOUR_GPUS, "machine", {"node_pool_name": "pool", "process_per_machine": 3}),
            *("pool", ("53248Mi", "10.466", 1), None),
        ),
        (
            *(ONE_GPU, "machine", {"node_pool_name": "pool", "process_per_machine": 8}),
            *("pool", ("5916Mi", "0.925", 1), None),
        ),
    ],
)
def test_symphonys_formula_gives_symphonys_amounts(
    source: Any, call: str, settings: dict[str, Any], pool: str, expected: tuple[Any, Any, Any], tolerations: Any
) -> None:
    process = ProcessSpec("p")
    getattr(GKEDispatcher(source, formula="symphony"), f"assign_to_{call}")(process, **settings)
    assert (asked(process), process.to_data()["node_selector"]) == (expected, {"name": pool})
    assert tolerations is None or process.to_data()["tolerations"] == tolerations


@pytest.mark.parametrize("settings", [{"cpu": 8}, {"gpu_type": "K80"}])
def test_what_symphony_could_not_place_is_a_value_error(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="no node pool is large enough"):
        GKEDispatcher(CLOUDWISE, formula="symphony").assign_to_resource(ProcessSpec("p"), **settings)


def test_a_share_of_a_machine_is_a_share_of_what_it_leaves(dispatcher: GKEDispatcher) -> None:
    process = ProcessSpec("p")
    dispatcher.assign_to_machine(process, node_pool_name=CPU8, process_per_machine=5)
    usable = dispatcher.get_node_pool(CPU8).usable
    assert asked(process) == (f"{usable['memory'] // 5 >> 20}Mi", f"{usable['cpu'] // 5}m", None)


def test_pods_select_gkes_own_label_and_tolerate_the_pool(dispatcher: GKEDispatcher) -> None:
    process = ProcessSpec("p")
    dispatcher.assign_to_gpu(process, node_pool_name=V100)
    assert process.to_data()["node_selector"] == {"cloud.google.com/gke-nodepool": V100}
    assert process.to_data()["tolerations"] == [EXCLUSIVE, NVIDIA]


@pytest.mark.parametrize(
    ("source", "call", "settings", "error", "message", "step"),
    [
        pytest.param(
            *(FOUR_GPUS, "assign_to_machine", {"node_pool_name": "pool", "process_per_machine": 3}),
            *(SpecError, "evenly", "use one of 1, 2, 4"),
            id="GPUs that do not divide",
        ),
        pytest.param(
            *(CLOUDWISE, "assign_to_resource", {"gpu_type": "p10"}),
            *(SpecError, 'no pool has GPUs of type "p10"', "nvidia-tesla-p100"),
            id="an unknown GPU type",
        ),
        pytest.param(
            *(
                CLOUDWISE,
                "assign_to_machine",
                {"node_pool_name": "np-8cpu-30720-np"},
                SpecError,
                "unknown node pool",
                CPU8,
            ),
            id="an unknown pool",
        ),
        pytest.param(
            *(CLOUDWISE, "assign_to_gpu", {"node_pool_name": CPU8}, SpecError, "has no GPU", ""),
            id="a pool without GPUs",
        ),
        pytest.param(
            *(CLOUDWISE, "assign_to_node_pool", {"node_pool_name": CPU8, "gpu_count": 1}),
            *(SpecError, "have 0", ""),
            id="more GPUs than a node has",
        ),
        pytest.param(
            *(CLOUDWISE, "assign_to", {"assign_to": "machine", "node_pool_name": CPU8, "gpu_type": "k80"}),
            *(TypeError, "takes no gpu_type", ""),
            id="a key of another mode",
        ),
        pytest.param(
            *(CLOUDWISE, "assign_to", {"assign_to": "cpu"}, ValueError, 'no mode "cpu"', ""), id="an unknown mode"
        ),
    ],
)
def test_what_cannot_be_assigned_is_refused_with_a_next_step(
    source: Any, call: str, settings: dict[str, Any], error: type[Exception], message: str, step: str
) -> None:
    with pytest.raises(error, match=message) as failure:
        getattr(GKEDispatcher(source), call)(ProcessSpec("p"), **settings)
    assert step in getattr(failure.value, "next", "")


def test_an_unknown_formula_is_refused() -> None:
    with pytest.raises(SpecError, match="no formula"):
        GKEDispatcher(CLOUDWISE, formula="guess")  # type: ignore[arg-type]  # the point of the test


def test_the_documented_call_of_assign_to_gpu_asks_for_resources(dispatcher: GKEDispatcher) -> None:
    process = ProcessSpec("p")
    decision = dispatcher.assign_to_gpu(process, cpu=2.5, memory_m=4096, gpu_type="k80", gpu_count=1)
    assert (decision.pool, asked(process)) == ("np-8cpu-53248mem-1k80-np", ("4096Mi", "2.5", 1))


def test_a_gpu_type_alone_means_one_gpu(dispatcher: GKEDispatcher) -> None:
    decision = dispatcher.assign_to_resource(ProcessSpec("p"), gpu_type="P100")
    assert (decision.pool, decision.gpus) == ("np-8cpu-53248mem-1p100-np", 1)


def test_a_gpu_type_that_no_pool_has_is_not_suggested_to_itself(dispatcher: GKEDispatcher) -> None:
    with pytest.raises(SpecError, match='no pool has GPUs of type "t4"') as failure:
        dispatcher.assign_to_resource(ProcessSpec("p"), gpu_type="t4")
    assert '"t4"' not in failure.value.next


def test_resources_go_to_the_best_fit_whatever_the_order_of_the_file(dispatcher: GKEDispatcher) -> None:
    data = json.loads(CLOUDWISE.read_text())
    pools = data["resource"]["google_container_node_pool"]
    data["resource"]["google_container_node_pool"] = dict(reversed(pools.items()))
    for one in (dispatcher, GKEDispatcher(data)):
        assert one.assign_to_resource(ProcessSpec("p"), cpu=1.2).pool == CPU2
        assert one.assign_to_resource(ProcessSpec("q"), cpu=1.99).pool == CPU8


def test_a_grouped_process_puts_selector_and_tolerations_on_its_group(dispatcher: GKEDispatcher) -> None:
    group = ProcessGroupSpec("nonagent")
    process = group.new_process("learner")
    dispatcher.assign_to_gpu(process, group, node_pool_name=V100)
    assert group.to_data()["node_selector"] == {"cloud.google.com/gke-nodepool": V100}
    assert "node_selector" not in process.to_data()


def test_another_group_than_the_process_is_in_is_an_error(dispatcher: GKEDispatcher) -> None:
    process = ProcessGroupSpec("nonagent").new_process("learner")
    with pytest.raises(SpecError, match='is in group "nonagent", not in "other"'):
        dispatcher.assign_to_machine(process, ProcessGroupSpec("other"), node_pool_name=CPU8)


def test_two_processes_of_one_group_cannot_go_to_two_pools(dispatcher: GKEDispatcher) -> None:
    group = ProcessGroupSpec("nonagent")
    dispatcher.assign_to_machine(group.new_process("a"), node_pool_name=CPU8, process_per_machine=2)
    with pytest.raises(SpecError, match="already bound to"):
        dispatcher.assign_to_machine(group.new_process("b"), node_pool_name=CPU2, process_per_machine=2)


def test_settings_out_of_configuration_choose_the_mode(dispatcher: GKEDispatcher) -> None:
    settings: dict[str, Any] = {"assign_to": "machine", "node_pool_name": CPU8, "process_per_machine": 2, "cpu": None}
    process = ProcessSpec("p")
    dispatcher.assign_to(process, **settings)
    assert asked(process)[1] == f"{dispatcher.get_node_pool(CPU8).usable['cpu'] // 2}m"


def test_an_exclusive_share_keeps_other_pods_off_the_node(dispatcher: GKEDispatcher) -> None:
    process = ProcessSpec("p")
    dispatcher.assign_to_machine(process, node_pool_name=CPU8, process_per_machine=2, exclusive=True)
    assert "podAntiAffinity" in str(process.to_data()["pod_overlay"])


def test_the_pools_are_listed_by_name(dispatcher: GKEDispatcher) -> None:
    assert dispatcher.get_node_pools() == sorted(dispatcher.get_node_pools())
    assert CPU2 in repr(dispatcher)
