"""Every format of cluster file is read as pools, and one broken field is refused with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symphony_charts.errors import SpecError, SymphError
from symphony_charts.placement.pools.pool import Pool, Pools
from symphony_charts.placement.pools.readers import merge, pools_of_data, read_pools

SAMPLES = Path(__file__).parents[2] / "examples/pools"
MIB = 1 << 20


def sample(name: str) -> Pools:
    return read_pools((SAMPLES / name).read_text(), name)


def pool(name: str, of: str) -> Pool:
    return next(pool for pool in sample(of).pools if pool.name == name)


@pytest.mark.parametrize(
    ("file", "names"),
    [
        ("cloudwise.tf.json", ["np-2cpu-7680mem-np", "np-8cpu-30720mem-np", "np-8cpu-53248mem-1k80-np"]),
        ("modern.tf.json", ["a100", "arm"]),
        ("plan.json", ["std8", "v100"]),
        ("state.json", ["std8", "v100"]),
        ("gcloud-node-pools.json", ["std8", "l4-spot", "tpu-v5e-4x4"]),
        ("gcloud-node-pool.yaml", ["std16"]),
        ("kubectl-nodes.json", ["std4"]),
        ("pools.yaml", ["std8", "v100", "lab"]),
    ],
)
def test_each_sample_gives_its_pools_in_order(file: str, names: list[str]) -> None:
    assert [pool.name for pool in sample(file).pools][: len(names)] == names


def test_plan_and_state_tell_the_same() -> None:
    plan, state = (
        [(p.name, p.allocatable, p.labels, p.max_nodes) for p in sample(name).pools]
        for name in ("plan.json", "state.json")
    )
    assert plan == state


def test_cloudwise_labels_become_the_texts_that_nodes_show() -> None:
    labels = pool("np-8cpu-53248mem-1v100-np", "cloudwise.tf.json").labels
    assert (labels["cpu"], labels["memory_m"], labels["preemptible"]) == ("8", "53248", "false")


def test_the_machine_type_counts_where_cloudwises_memory_label_is_wrong() -> None:
    config = {"machine_type": "n1-highcpu-8", "labels": {"name": "hc", "cpu": 8, "memory_m": 14745}}
    data = {"resource": {"google_container_node_pool": {"hc": {"name": "hc", "node_count": 1, "node_config": config}}}}
    assert pools_of_data(data).pools[0].memory_mib == 7373


def test_gpu_pools_of_cloudwise_keep_the_taint_they_were_written_with() -> None:
    taints = [str(taint) for taint in pool("np-8cpu-53248mem-1v100-np", "cloudwise.tf.json").taints]
    assert taints == ["exclusive_workload=exclusive:NoExecute", "nvidia.com/gpu=present:NoSchedule"]


def test_given_variables_override_defaults() -> None:
    text = (SAMPLES / "modern.tf.json").read_text()
    read = read_pools(text, "modern.tf.json", variables={"zone": "europe-west4-b"})
    assert read.pools[0].region == "europe-west4"


def test_an_expression_that_terraform_alone_knows_asks_for_the_plan() -> None:
    body = {"name": "p", "node_config": {"machine_type": "${data.x.y}"}}
    text = json.dumps({"resource": {"google_container_node_pool": {"p": body}}}, indent=1)
    with pytest.raises(SpecError, match="cannot evaluate") as failure:
        read_pools(text, "p.tf.json")
    assert failure.value.at == "p.tf.json:7, resource.google_container_node_pool.p.node_config.machine_type"
    assert "terraform show -json" in failure.value.next


def test_sizes_are_per_zone_unless_they_are_totals() -> None:
    assert pool("std8", "gcloud-node-pools.json").max_nodes == 16
    assert pool("l4-spot", "gcloud-node-pools.json").max_nodes == 6


def test_effective_reservations_of_gke_replace_the_model() -> None:
    spot = pool("l4-spot", "gcloud-node-pools.json")
    assert (spot.accuracy, spot.allocatable["cpu"]) == ("effective", 48000 - 330)


def test_a_tpu_slice_knows_its_hosts() -> None:
    tpu = pool("tpu-v5e-4x4", "gcloud-node-pools.json").tpu
    assert tpu is not None
    assert (tpu.hosts, tpu.chips) == (4, 4)


def test_yaml_of_gcloud_is_read_like_its_json() -> None:
    std16 = pool("std16", "gcloud-node-pool.yaml")
    distribution = std16.labels["cloud.google.com/gke-os-distribution"]
    assert (std16.machine_type, std16.allocatable["pods"], distribution) == ("n2-standard-16", 32, "ubuntu")


def test_live_nodes_lose_exactly_what_runs_on_them() -> None:
    nodes = {node.name: node for node in pool("std4", "kubectl-nodes.json").nodes}
    idle, busy = nodes["gke-rl-std4-b"], nodes["gke-rl-std4-a"]
    assert (idle.free["cpu"], idle.free["pods"]) == (3920 - 384, 110 - 8)
    assert (idle.free["cpu"] - busy.free["cpu"], idle.free["memory"] - busy.free["memory"]) == (2000, 4096 * MIB)


def test_new_nodes_lose_what_the_daemonsets_take() -> None:
    std4 = pool("std4", "kubectl-nodes.json")
    assert (std4.system["cpu"], std4.system["memory"], std4.system["pods"]) == (384, 626 * MIB, 8)


@pytest.mark.parametrize(
    "content",
    [
        {"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "a"}, "spec": {}},
        {"apiVersion": "karpenter.sh/v1alpha5", "kind": "Provisioner", "metadata": {"name": "a"}, "spec": {}},
        {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "k"}, "spec": {}},
        {"apiVersion": "eksctl.io/v1alpha5", "kind": "ClusterConfig", "nodeGroups": [{"name": "ng"}]},
        [{"name": "nodepool1", "count": 3, "vmSize": "Standard_D4s_v3"}],
    ],
    ids=["EC2NodeClass", "Provisioner", "NodePool", "eksctl", "az aks nodepool list"],
)
def test_pools_of_other_clusters_are_refused_with_the_way_in(content: object) -> None:
    with pytest.raises(SpecError) as caught:
        read_pools(json.dumps(content), "pools.json")
    assert "kubectl get nodes -o json" in caught.value.problems[0].next


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("cloud.google.com/gke-nodepool", "symph subtracts only system pods"),
        ("eks.amazonaws.com/nodegroup", "symph subtracts GKE's system pods, although"),
        ("kubernetes.azure.com/agentpool", "symph subtracts GKE's system pods, although"),
    ],
)
def test_nodes_without_pods_say_whose_system_pods_were_taken_off(label: str, words: str) -> None:
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1", "labels": {label: "ng"}},
        "status": {"allocatable": {"cpu": "3920m", "memory": "15Gi", "pods": "58"}},
    }
    [read] = read_pools(json.dumps({"apiVersion": "v1", "kind": "List", "items": [node]}), "nodes.json").pools
    assert words in read.notes[0]


def test_live_nodes_join_the_pool_that_another_file_describes() -> None:
    described = pools_of_data({"pools": [{"name": "std4", "machine_type": "n2-standard-4", "max_nodes": 9}]}, "p.yaml")
    both = merge([described, sample("kubectl-nodes.json")]).pools[0]
    assert (both.accuracy, len(both.nodes), both.max_nodes) == ("live", 3, 9)


def test_gclouds_machine_list_extends_the_catalogue() -> None:
    listed = [{"name": "n9-standard-4", "guestCpus": 4, "memoryMb": 16384, "zone": zone} for zone in ("a", "b")]
    assert pools_of_data(listed, "types.json").catalog.get("n9-standard-4") is not None


def test_partitioned_and_shared_gpus_are_counted_as_pods_see_them() -> None:
    gpu = {"partition": "1g.5gb", "sharing": "TIME_SHARING", "clients": 3}
    data = {"pools": [{"name": "mig", "machine_type": "a2-highgpu-2g", "max_nodes": 1, "gpu": gpu}]}
    assert pools_of_data(data).pools[0].gpus == 2 * 7 * 3


def test_dynamic_resource_allocation_leaves_no_gpu_to_count() -> None:
    labels = {"cloud.google.com/gke-nvidia-gpu-dra-driver": "true"}
    data = {"pools": [{"name": "dra", "machine_type": "g2-standard-4", "max_nodes": 1, "labels": labels}]}
    assert "nvidia.com/gpu" not in pools_of_data(data).pools[0].allocatable


def broken(name: str, old: str, new: str) -> SpecError:
    text = (SAMPLES / name).read_text()
    assert old in text
    with pytest.raises(SpecError) as failure:
        read_pools(text.replace(old, new, 1), name)
    return failure.value


_TYPE = '"machine_type": "n1-standard-2",\n                    "oauth_scopes"'


@pytest.mark.parametrize(
    ("file", "old", "new", "place", "what"),
    [
        ("cloudwise.tf.json", _TYPE, _TYPE.replace("n1", "n11"), "cloudwise.tf.json:43", "unknown machine"),
        ("cloudwise.tf.json", '"NO_EXECUTE"', '"NEVER"', "node_config.taint[0].effect", "unknown taint effect"),
        ("modern.tf.json", '"count": 4', '"count": "four"', "guest_accelerator[0].count", "a whole number"),
        ("plan.json", '"disk_size_gb": 100', '"disk_size_gb": 3', "disk_size_gb", "below 10"),
        ("state.json", '"n1-highmem-8"', "7", "values.node_config.machine_type", "unknown machine type"),
        ("state.json", '"max_node_count": 16', '"max_node_count": []', "max_node_count", "a whole number"),
        ("gcloud-node-pools.json", 'PerNode": "110"', 'PerNode": "lots"', "[0].maxPods", "whole number"),
        ("gcloud-node-pool.yaml", "diskSizeGb: 50", "diskSizeGb: [50]", "gcloud-node-pool.yaml:12", "a whole number"),
        (
            "kubectl-nodes.json",
            '"cpu": "3920m"',
            '"cpu": "3920x"',
            "items[0].status.allocatable.cpu",
            "is not a quantity",
        ),
        ("pools.yaml", "max_nodes: 3", "max_node: 3", "pools.yaml:18", 'unknown key "max_node"'),
    ],
)
def test_one_broken_field_is_refused_with_its_place(file: str, old: str, new: str, place: str, what: str) -> None:
    text = str(broken(file, old, new))
    assert what in text
    assert place in text
    assert f"{file}:" in text


def test_all_faults_are_told_at_once() -> None:
    data = {"pools": [{"name": "a", "machine_type": "x"}, {"machine_type": "n1-standard-1", "max_nodes": -1}]}
    with pytest.raises(SpecError) as failure:
        pools_of_data(data, "pools.yaml")
    assert len(failure.value.problems) == 3


def test_a_misspelt_machine_is_corrected() -> None:
    assert 'did you mean "n1-standard-8"?' in broken("pools.yaml", "n1-standard-8", "n1-standrd-8").next


def test_what_describes_no_pools_is_refused() -> None:
    with pytest.raises(SpecError, match="describes no node pools"):
        read_pools("{}", "x.json")


def test_a_live_node_with_an_unknown_tpu_topology_is_refused() -> None:
    labels = {"cloud.google.com/gke-tpu-topology": "4by4"}
    node = {"kind": "Node", "metadata": {"name": "n", "labels": labels}}
    node["status"] = {"allocatable": {"cpu": "4", "google.com/tpu": 4}}
    with pytest.raises(SpecError, match='"4by4" is not a TPU topology'):
        pools_of_data({"kind": "List", "apiVersion": "v1", "items": [node]})


def test_two_pools_of_one_name_are_refused() -> None:
    twice = {"pools": [{"name": "a", "machine_type": "n1-standard-1", "max_nodes": 1}] * 2}
    with pytest.raises(SpecError, match='two pools are named "a"'):
        pools_of_data(twice)


def test_broken_json_is_refused_as_such() -> None:
    with pytest.raises(SpecError, match="is not valid JSON"):
        read_pools('{"resource": ', "x.tf.json")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('resource "a" "b" {}\n', "x.tf"),
        ("deployment_groups: []\n", "b.yaml"),
        ('{"version": 4, "terraform_version": "1.9", "resources": []}', "terraform.tfstate"),
    ],
)
def test_hcl_blueprints_and_raw_states_are_refused_with_the_command_to_run(text: str, name: str) -> None:
    with pytest.raises(SpecError, match="symph does not read") as failure:
        read_pools(text, name)
    assert failure.value.at == name
    assert "terraform show -json > cluster.json" in failure.value.next


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 500) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(sorted(p.name for p in SAMPLES.glob("*.json"))), st.data())
def test_no_value_anywhere_makes_a_reader_crash(file: str, data: st.DataObject) -> None:
    content: Any = json.loads((SAMPLES / file).read_text())
    here, key = content, None
    for _ in range(data.draw(st.integers(1, 7))):
        keys = list(here) if isinstance(here, dict) else list(range(len(here))) if isinstance(here, list) else []
        if not keys:
            break
        parent, key = here, data.draw(st.sampled_from(keys))
        here = here[key]
    if key is not None:
        parent[key] = data.draw(JSON)
    try:
        pools_of_data(content, file)
    except SymphError:
        return
