"""What a region, a reference or a module hides is counted, followed, or said; it never turns into a NO."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from symphony_charts.errors import SpecError
from symphony_charts.placement.fit.demand import Demand, Shape
from symphony_charts.placement.fit.verdicts import Group
from symphony_charts.placement.plan import plan_demands
from symphony_charts.placement.pools.files import read_pool_files
from symphony_charts.placement.pools.pool import Pool, Pools
from symphony_charts.placement.pools.readers import pools_of_data, read_pools

MIB = 1 << 20
WHOLE = Shape(requests=(("cpu", 7000), ("memory", MIB), ("pods", 1)))


def verdict(pools: Pools, count: int, shape: Shape = WHOLE) -> Group:
    """The verdict where nothing of kube-system takes room."""
    return plan_demands([Demand(shape, [("g", count)])], replace(pools, workloads=())).groups[0]


def hcl(text: str) -> Pools:
    return read_pools(text, "main.tf")


def refusal(text: str, name: str = "main.tf") -> SpecError:
    with pytest.raises(SpecError) as failure:
        read_pools(text, name)
    return failure.value


POOL = """
resource "google_container_node_pool" "p" {{
  name     = "p"
  cluster  = google_container_cluster.c.name
  location = {location}
  {count}
  node_config {{
    machine_type = "n2-standard-8"
  }}
}}
"""
CLUSTER = 'resource "google_container_cluster" "c" {\n  name = "c"\n  location = "us-central1"\n  %s\n}\n'
SCALING = "autoscaling {\n max_node_count = 2\n }"


def test_a_region_without_zones_is_never_a_no() -> None:
    regional = hcl(POOL.format(location='"us-central1"', count="node_count = 1"))
    assert verdict(regional, 1).verdict == "PROVEN"
    more = verdict(regional, 2)
    assert (more.verdict, "the zones of region us-central1 are not said" in more.why) == ("UNKNOWN", True)


def test_zones_of_the_cluster_multiply_its_pools() -> None:
    zones = 'node_locations = ["us-central1-a", "us-central1-b", "us-central1-c"]'
    pools = hcl(CLUSTER % zones + POOL.format(location='"us-central1"', count=SCALING))
    assert pools.pools[0].max_nodes == 6
    assert verdict(pools, 6).verdict == "PROVEN"


def test_a_location_that_refers_to_the_cluster_is_followed() -> None:
    zonal = (CLUSTER % "").replace('"us-central1"', '"us-central1-a"')
    pool = hcl(zonal + POOL.format(location="google_container_cluster.c.location", count="node_count = 3")).pools[0]
    assert (pool.zones, pool.max_nodes, pool.doubts) == (("us-central1-a",), 3, ())


def test_a_zonal_cluster_has_its_own_zone_and_the_additional_ones() -> None:
    zonal = (CLUSTER % 'node_locations = ["us-central1-b"]').replace('"us-central1"', '"us-central1-a"')
    pool = hcl(zonal + POOL.format(location='"us-central1-a"', count="node_count = 1")).pools[0]
    assert (pool.zones, pool.max_nodes) == (("us-central1-a", "us-central1-b"), 2)


def test_totals_need_no_zones() -> None:
    total = "autoscaling {\n total_max_node_count = 5\n }"
    assert verdict(hcl(POOL.format(location='"us-central1"', count=total)), 6).verdict == "NO"


def test_zones_in_a_variable_that_nobody_sets_are_unknown() -> None:
    text = 'variable "zones" {\n type = list(string)\n}\n' + POOL.format(
        location="null", count="node_locations = var.zones\n node_count = 1"
    )
    assert verdict(hcl(text), 9).verdict == "UNKNOWN"
    given = read_pools(text, "main.tf", variables={"zones": '["us-east1-b", "us-east1-c"]'})
    assert given.pools[0].max_nodes == 2


def test_a_pool_that_says_no_number_of_nodes_is_no_no() -> None:
    assert verdict(hcl(POOL.format(location='"us-central1-a"', count="")), 1).verdict == "UNKNOWN"


def test_node_auto_provisioning_turns_a_no_into_unknown() -> None:
    scaling = "cluster_autoscaling {\n enabled = true\n }"
    pools = hcl(CLUSTER % scaling + POOL.format(location='"us-central1-a"', count="node_count = 1"))
    group = verdict(pools, 2)
    assert (group.verdict, "node auto-provisioning" in group.why) == ("UNKNOWN", True)


def test_a_dynamic_block_is_written_out() -> None:
    dynamic = """
locals {
  taints = [{ key = "team", value = "rl" }]
}
resource "google_container_node_pool" "p" {
  name = "p"
  location = "us-central1-a"
  node_count = 1
  node_config {
    machine_type = "n2-standard-8"
    dynamic "taint" {
      for_each = local.taints
      content {
        key    = taint.value.key
        value  = taint.value.value
        effect = "NO_SCHEDULE"
      }
    }
  }
}
"""
    assert [str(taint) for taint in hcl(dynamic).pools[0].taints] == ["team=rl:NoSchedule"]
    assert "cannot evaluate" in str(refusal(dynamic.replace("local.taints", "var.taints")))


ENGINE = "terraform-google-modules/kubernetes-engine/google"
MODULE = """
module "gke" {
  source     = "terraform-google-modules/kubernetes-engine/google%s"
  name       = "c"
  region     = "us-central1"
  zones      = ["us-central1-a", "us-central1-b"]
  network_policy = true
  node_pools = [
    { name = "std", machine_type = "n2-standard-8", max_count = 3, enable_gcfs = true },
    { name = "gpu", machine_type = "n1-standard-8", accelerator_type = "nvidia-tesla-t4", accelerator_count = 1,
      autoscaling = false, node_count = 2, node_locations = "us-central1-b", sandbox_enabled = true },
  ]
  node_pools_labels = { all = { team = "rl" }, std = { kind = "plain" } }
  node_pools_taints = { all = [], gpu = [{ key = "only", value = "gpu", effect = "NO_SCHEDULE" }] }
  node_pools_hugepage_size_1g = { std = "2" }
}
"""
SUBMODULES = (
    "",
    "//modules/private-cluster",
    "//modules/beta-public-cluster-update-variant",
    "//modules/safer-cluster",
)


@pytest.mark.parametrize("submodule", SUBMODULES)
def test_node_pools_of_the_standard_module_are_read(submodule: str) -> None:
    std, gpu = hcl(MODULE % (f"//modules/{submodule}" if submodule else "")).pools
    assert (std.name, std.max_nodes, gpu.max_nodes, gpu.zones) == ("std", 6, 2, ("us-central1-b",))
    assert (std.labels["team"], std.labels["kind"], "kind" in gpu.labels) == ("rl", "plain", False)
    assert (std.system["cpu"], std.allocatable["hugepages-1Gi"]) == (900, 2 << 30)
    assert {str(taint) for taint in gpu.taints} >= {"only=gpu:NoSchedule", "sandbox.gke.io/runtime=gvisor:NoSchedule"}
    assert (gpu.gpu_type, gpu.attached_gpus) == ("nvidia-tesla-t4", 1)


def test_a_resource_beside_the_module_hides_no_pool() -> None:
    beside = 'resource "google_tags_tag_key" "k" {\n  short_name = "k"\n}\n'
    assert hcl(beside + MODULE % "").names == ["gpu", "std"]


def test_an_argument_of_the_module_that_nobody_knows_is_a_doubt() -> None:
    pools = hcl((MODULE % "").replace("enable_gcfs = true", "freeze = true"))
    assert verdict(pools, 1).verdict == "UNKNOWN"


def test_the_module_for_one_pool_takes_the_resources_own_words() -> None:
    text = """
module "np" {
  source   = "terraform-google-modules/kubernetes-engine/google//modules/gke-node-pool"
  location = "us-central1-a"
  cluster  = "c"
  node_count = 2
  node_config = { machine_type = "n2-standard-8" }
}
"""
    assert [(pool.name, pool.max_nodes) for pool in hcl(text).pools] == [("np", 2)]


def test_other_modules_with_node_pools_are_refused_with_the_command_for_a_plan() -> None:
    text = 'module "gke" {\n  source = "./own"\n  node_pools = [{ name = "a" }]\n}\n'
    assert "terraform show -json" in refusal(text).next


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (f'module "a" {{\n source = "{ENGINE}//modules/gke-autopilot-cluster"\n}}\n', "Autopilot"),
        ('module "net" {\n source = "terraform-google-modules/network/google"\n}\n', "modules may make some"),
        (CLUSTER % "", "a cluster, but no node pools"),
        ('resource "aws_eks_node_group" "n" {\n instance_types = ["m5.large"]\n}\n', "aws_eks_node_group"),
        ('resource "helm_release" "n" {\n name = "n"\n}\n', "describes no node pools"),
    ],
)  # fmt: skip
def test_a_file_without_pools_says_where_they_may_be(text: str, what: str) -> None:
    assert what in str(refusal(text))


def test_hcl_that_the_library_cannot_parse_is_said_as_such() -> None:
    assert "python-hcl2 cannot parse" in str(refusal('resource "a" "b" {\n  x = = 1\n}\n'))


CLASS = """\
apiVersion: cloud.google.com/v1
kind: ComputeClass
metadata: {name: fast}
spec:
  priorities:
  - nodepools: [big]
  - machineType: n2-standard-8
"""


def test_an_existing_pool_of_a_compute_class_comes_from_another_file(tmp_path: Path) -> None:
    (tmp_path / "class.yaml").write_text(CLASS)
    pool = {
        "name": "big",
        "machine_type": "n2-standard-32",
        "max_nodes": 2,
        "labels": {"cloud.google.com/compute-class": "fast"},
    }
    (tmp_path / "pools.yaml").write_text(json.dumps({"pools": [pool]}))
    both = read_pool_files([tmp_path / "class.yaml", tmp_path / "pools.yaml"])
    assert both.names == ["big", "fast-2"]
    with pytest.raises(SpecError, match="described nowhere") as failure:
        read_pool_files([tmp_path / "class.yaml"])
    assert "class.yaml:6" in str(failure.value)


def test_all_documents_of_a_yaml_file_are_read() -> None:
    second = CLASS.replace("fast", "slow").replace("[big]", "[small]")
    pools = read_pools(f"---\n{CLASS}---\n{second}---\n", "classes.yaml")
    assert pools.names == ["fast-2", "slow-2"]
    assert "classes.yaml:15" in dict(pools.wanted)["small"]


def test_a_fault_of_a_later_document_has_its_own_line() -> None:
    text = CLASS + "---\n" + CLASS.replace("n2-standard-8", "n2-standard-9")
    assert "c.yaml:15" in str(refusal(text, "c.yaml"))


def test_a_node_pool_of_karpenter_is_refused_with_what_to_give() -> None:
    text = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: k}\nspec: {}\n"
    assert "kubectl get nodes" in refusal(text, "k.yaml").next


@pytest.mark.parametrize("kind", ["aws_eks_node_group", "azurerm_kubernetes_cluster_node_pool"])
def test_plans_and_states_of_other_clouds_are_refused_and_no_lack_of_pools(kind: str) -> None:
    resource = {"address": f"{kind}.g", "mode": "managed", "type": kind, "name": "g", "values": {"name": "g"}}
    module = {"root_module": {"resources": [resource]}}
    state = {**resource, "instances": [{"attributes": {"name": "g"}}]}
    for data in (
        {"format_version": "1.2", "planned_values": module},
        {"format_version": "1.0", "values": module},
        {"version": 4, "terraform_version": "1.9", "resources": [state]},
    ):
        assert "kubectl get nodes" in refusal(json.dumps(data), "s.json").next


BLUEPRINT: dict[str, Any] = {
    "blueprint_name": "b",
    "vars": {"zone": "us-central1-a", "most": 4, "unset": None},
    "deployment_groups": [
        {
            "group": "primary",
            "modules": [
                {"id": "net", "source": "modules/network/vpc"},
                {
                    "id": "l4",
                    "source": "modules/compute/gke-node-pool",
                    "settings": {
                        "machine_type": "g2-standard-24",
                        "zones": ["$(vars.zone)"],
                        "autoscaling_total_max_nodes": "$(vars.most)",
                        "enable_gcfs": True,
                    },
                },
            ],
        }
    ],
}


def test_a_blueprint_of_the_cluster_toolkit_is_read_where_it_is_literal() -> None:
    pool: Pool = pools_of_data(BLUEPRINT, "b.yaml").pools[0]
    assert (pool.name, pool.machine_type, pool.max_nodes, pool.zones) == ("l4", "g2-standard-24", 4, ("us-central1-a",))
    text = json.dumps(BLUEPRINT).replace("$(vars.most)", "$(vars.unset)")
    assert "cannot evaluate ${vars.unset}" in str(refusal(text, "b.yaml"))


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ({"machine_type": "e2-standard-8", "gpu": {"type": "t4", "count": 4}}, "attached to n1 machines alone"),
        ({"machine_type": "n1-standard-96", "gpu": {"type": "k80", "count": 4}}, "too large for 4"),
        ({"machine_type": "n1-standard-8", "gpu": {"type": "k80", "count": 3}}, "no machine has 3"),
        ({"machine_type": "g2-standard-24", "gpu": {"type": "nvidia-l4", "count": 4}}, "has 2 GPUs, not 4"),
        ({"machine_type": "g2-standard-24", "gpu": {"type": "t4", "count": 2}}, "comes with nvidia-l4"),
        ({"machine_type": "n2-standard-8", "gpu": {"type": "l4", "count": 1}}, "no GPU is attached"),
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
    assert "2 of 3 nodes show no GPU yet" in verdict(pools, 3, one_gpu).why
