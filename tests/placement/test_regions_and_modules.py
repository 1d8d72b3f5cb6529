"""Unknown counts in regions, references and modules are resolved or reported; they never turn into a NO."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from symphony_charts.errors import SpecError
from symphony_charts.placement.fit.demand import Demand, Shape
from symphony_charts.placement.fit.verdicts import Group
from symphony_charts.placement.plan import plan_demands
from symphony_charts.placement.pools.pool import Pools
from symphony_charts.placement.pools.readers import pools_of_data, read_pools

MIB = 1 << 20
WHOLE = Shape(requests=(("cpu", 7000), ("memory", MIB), ("pods", 1)))


def verdict(pools: Pools, count: int, shape: Shape = WHOLE) -> Group:
    return plan_demands([Demand(shape, [("g", count)])], replace(pools, workloads=())).groups[0]


def refusal(text: str, name: str = "main.tf.json") -> SpecError:
    with pytest.raises(SpecError) as failure:
        read_pools(text, name)
    return failure.value


def configuration(
    pool: dict[str, Any], cluster: dict[str, Any] | None = None, variables: dict[str, Any] | None = None
) -> Pools:
    return read_pools(text_of(pool, cluster), "main.tf.json", variables=variables)


def text_of(pool: dict[str, Any] | None, cluster: dict[str, Any] | None = None, **more: Any) -> str:
    resources: dict[str, Any] = {}
    if pool is not None:
        body = {"name": "p", "cluster": "${google_container_cluster.c.name}", "location": "us-central1"}
        config = {"node_config": {"machine_type": "n2-standard-8"}}
        resources["google_container_node_pool"] = {"p": {**body, **config, **pool}}
    if cluster is not None:
        resources["google_container_cluster"] = {"c": {"name": "c", "location": "us-central1", **cluster}}
    return json.dumps({"resource": resources, **more})


SCALING = {"autoscaling": {"max_node_count": 2}}


def test_a_region_without_zones_is_never_a_no() -> None:
    regional = configuration({"node_count": 1})
    assert verdict(regional, 1).verdict == "PROVEN"
    more = verdict(regional, 2)
    assert (more.verdict, "the zones of region us-central1 are not set" in more.why) == ("UNKNOWN", True)


def test_zones_of_the_cluster_multiply_its_pools() -> None:
    zones = {"node_locations": ["us-central1-a", "us-central1-b", "us-central1-c"]}
    pools = configuration(SCALING, zones)
    assert pools.pools[0].max_nodes == 6
    assert verdict(pools, 6).verdict == "PROVEN"


def test_a_location_that_refers_to_the_cluster_is_followed() -> None:
    referring = {"location": "${google_container_cluster.c.location}", "node_count": 3}
    pool = configuration(referring, {"location": "us-central1-a"}).pools[0]
    assert (pool.zones, pool.max_nodes, pool.uncertainties) == (("us-central1-a",), 3, ())


def test_a_zonal_cluster_has_its_own_zone_and_the_additional_ones() -> None:
    zonal = {"location": "us-central1-a", "node_locations": ["us-central1-b"]}
    pool = configuration({"location": "us-central1-a", "node_count": 1}, zonal).pools[0]
    assert (pool.zones, pool.max_nodes) == (("us-central1-a", "us-central1-b"), 2)


def test_totals_need_no_zones() -> None:
    assert verdict(configuration({"autoscaling": {"total_max_node_count": 5}}), 6).verdict == "NO"


@pytest.mark.parametrize(
    "pool",
    [
        {"location": None, "node_locations": "${var.zones}"},
        {"location": "${data.google_container_cluster.c.location}"},
        {"node_config": {"machine_type": "n2-standard-8", "labels": {"team": "${lower(var.team)}"}}},
    ],
)
def test_zones_and_labels_that_only_terraform_resolves_are_refused(pool: dict[str, Any]) -> None:
    found = refusal(text_of({"node_count": 1, **pool}))
    assert ("cannot evaluate" in found.what, "--var" in found.next) == (True, True)


def test_a_variable_gives_the_zones_of_a_pool() -> None:
    pool = {"location": None, "node_locations": "${var.zones}", "node_count": 1}
    assert configuration(pool, variables={"zones": '["us-east1-b", "us-east1-c"]'}).pools[0].max_nodes == 2


def test_a_pool_that_says_no_number_of_nodes_is_no_no() -> None:
    assert verdict(configuration({"location": "us-central1-a"}), 1).verdict == "UNKNOWN"


def test_node_auto_provisioning_turns_a_no_into_unknown() -> None:
    scaling = {"cluster_autoscaling": {"enabled": True}}
    pools = configuration({"location": "us-central1-a", "node_count": 1}, scaling)
    group = verdict(pools, 2)
    assert (group.verdict, "node auto-provisioning" in group.why) == ("UNKNOWN", True)


@pytest.mark.parametrize(
    ("key", "body"),
    [
        ("for_each", {"for_each": {"a": 1, "b": 2}, "name": "${each.key}", "node_count": "${each.value}"}),
        ("count", {"count": 2, "name": "p${count.index}", "node_count": 1}),
        ("dynamic", {"node_config": {"machine_type": "n2-standard-8", "dynamic": {"taint": {"for_each": ["a"]}}}}),
    ],
)
def test_what_repeats_pools_is_refused_with_the_command_to_run(key: str, body: dict[str, Any]) -> None:
    found = refusal(text_of(body))
    assert (found.what.startswith(key), "terraform show -json" in found.next) == (True, True)


@pytest.mark.parametrize(
    "module",
    [
        {"source": "./own", "node_pools": [{"name": "a"}]},
        {"source": "terraform-google-modules/kubernetes-engine/google//modules/private-cluster"},
    ],
)
def test_a_module_that_makes_node_pools_is_refused_with_the_command_to_run(module: dict[str, Any]) -> None:
    for pool in (None, {"node_count": 1}):
        found = refusal(text_of(pool, module={"gke": module}))
        assert (found.at, "terraform show -json" in found.next) == ("main.tf.json:1, module.gke", True)


@pytest.mark.parametrize(
    ("data", "what"),
    [
        ({"module": {"net": {"source": "terraform-google-modules/network/google"}}}, "if modules make them"),
        ({"resource": {"google_container_cluster": {"c": {"name": "c"}}}}, "this file has no GKE node pools"),
        ({"resource": {"google_container_cluster": {"c": {"name": "c", "enable_autopilot": True}}}}, "Autopilot"),
        ({"resource": {"aws_eks_node_group": {"n": {"instance_types": ["m5.large"]}}}}, "kubectl get nodes"),
    ],
)  # fmt: skip
def test_a_file_without_pools_says_where_they_may_be(data: dict[str, Any], what: str) -> None:
    assert what in str(refusal(json.dumps(data)))


POOL = """\
name: big
initialNodeCount: 1
config:
  machineType: n2-standard-8
"""


def test_all_documents_of_a_yaml_file_are_read() -> None:
    assert read_pools(f"---\n{POOL}---\n{POOL.replace('big', 'small')}---\n", "gcloud.yaml").names == ["big", "small"]


def test_a_fault_of_a_later_document_has_its_own_line() -> None:
    text = POOL + "---\n" + POOL.replace("n2-standard-8", "n2-standard-9")
    assert "gcloud.yaml:9" in str(refusal(text, "gcloud.yaml"))


@pytest.mark.parametrize("kind", ["aws_eks_node_group", "azurerm_kubernetes_cluster_node_pool"])
def test_plans_and_states_of_other_clouds_are_refused_and_no_lack_of_pools(kind: str) -> None:
    resource = {"address": f"{kind}.g", "mode": "managed", "type": kind, "name": "g", "values": {"name": "g"}}
    module = {"root_module": {"resources": [resource]}}
    for data in (
        {"format_version": "1.2", "planned_values": module},
        {"format_version": "1.0", "values": module},
    ):
        assert "kubectl get nodes" in refusal(json.dumps(data), "s.json").next


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ({"machine_type": "e2-standard-8", "gpu": {"type": "t4", "count": 4}}, "e2 machines cannot have t4"),
        ({"machine_type": "n1-standard-96", "gpu": {"type": "k80", "count": 4}}, "cannot have 4"),
        ({"machine_type": "n1-standard-8", "gpu": {"type": "k80", "count": 3}}, "cannot have 3"),
        ({"machine_type": "n2-standard-8", "gpu": {"type": "l4", "count": 1}}, "n2 machines cannot have l4"),
        ({"machine_type": "g2-standard-24", "gpu": {"type": "nvidia-l4", "count": 4}}, "has 2 GPUs, not 4"),
        ({"machine_type": "g2-standard-24", "gpu": {"type": "t4", "count": 2}}, "comes with nvidia-l4"),
        ({"machine_type": "n1-standard-8", "gpu": {"type": "t4", "count": 1, "partition": "1g.5gb"}}, "no partitions"),
        ({"machine_type": "a2-highgpu-1g", "gpu": {"partition": "9g.5gb"}}, "no GPU has partitions"),
    ],
)
def test_machines_and_gpus_that_do_not_exist_together_are_refused(row: dict[str, Any], what: str) -> None:
    data = {"pools": [{"name": "p", "max_nodes": 1, **row}]}
    with pytest.raises(SpecError, match=what):
        pools_of_data(data, "pools.yaml")


def test_a_tpu_slice_that_is_full_asks_for_another_pool() -> None:
    row = {"name": "tpu", "machine_type": "ct5lp-hightpu-4t", "tpu_topology": "4x4", "nodes": 4}
    amounts = (("cpu", 100), ("google.com/tpu", 4), ("memory", MIB), ("pods", 1))
    selector = (("cloud.google.com/gke-tpu-topology", "4x4"),)
    group = verdict(pools_of_data({"pools": [row]}), 8, Shape(requests=amounts, selector=selector))
    assert group.verdict == "NO"
    assert "add 1 pool like tpu" in group.next


def test_a_pool_whose_drivers_come_up_is_a_gpu_pool() -> None:
    def node(name: str, gpus: int) -> dict[str, Any]:
        labels = {"cloud.google.com/gke-nodepool": "g", "cloud.google.com/gke-accelerator": "nvidia-l4"}
        offered = {"cpu": "8", "memory": "30Gi", "pods": "110"} | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
        meta = {"name": name, "labels": labels}
        return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": {"allocatable": offered}}

    pools = pools_of_data([node("a", 0), node("b", 1), node("c", 0)], "nodes.json")
    assert (pools.pools[0].gpus, pools.pools[0].usable["nvidia.com/gpu"]) == (1, 1)
    one_gpu = Shape(requests=(("cpu", 100), ("memory", MIB), ("nvidia.com/gpu", 1), ("pods", 1)))
    assert verdict(pools, 3, one_gpu).verdict == "UNKNOWN"
    assert "2 of 3 nodes show no GPU" in verdict(pools, 3, one_gpu).why
