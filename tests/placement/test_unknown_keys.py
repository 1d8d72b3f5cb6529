"""Every key under a node pool is used, known to be irrelevant, or reported: a node read in part proves nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from symphony_charts.placement.fit.demand import Demand, Shape
from symphony_charts.placement.fit.verdicts import Group
from symphony_charts.placement.plan import plan_demands
from symphony_charts.placement.pools.pool import Pools
from symphony_charts.placement.pools.readers import pools_of_data, read_pools
from symphony_charts.spec.sources import Toleration

SAMPLES = Path(__file__).parents[2] / "examples/pools"
MIB = 1 << 20


def shape(cpu: int = 100, memory_mib: int = 64, **more: int) -> Shape:
    amounts = {"cpu": cpu, "memory": memory_mib * MIB, "pods": 1, **{k.replace("_", "-"): v for k, v in more.items()}}
    return Shape(requests=tuple(sorted(amounts.items())))


def verdict(pools: Pools, wanted: Shape, count: int = 1) -> Group:
    return plan_demands([Demand(wanted, [("g", count)])], pools).groups[0]


def terraform(config: dict[str, Any], pool: dict[str, Any] | None = None, **cluster: Any) -> Pools:
    body = {"name": "p", "location": "us-central1-a", "node_count": 2, "cluster": "${google_container_cluster.c.name}"}
    node_pool = {"p": body | {"node_config": {"machine_type": "n2-standard-8"} | config} | (pool or {})}
    resources: dict[str, Any] = {"google_container_node_pool": node_pool}
    if cluster:
        resources["google_container_cluster"] = {"c": {"name": "c", "location": "us-central1-a", **cluster}}
    return pools_of_data({"resource": resources}, "p.tf.json")


def gcloud(config: dict[str, Any], **pool: Any) -> Pools:
    base = {"name": "p", "initialNodeCount": 2, "locations": ["us-central1-a"]}
    return pools_of_data([base | {"config": {"machineType": "n2-standard-8"} | config} | pool], "p.json")


PLAIN = terraform({}).pools[0]


def test_a_key_of_a_node_that_nobody_knows_leaves_its_pool_unknown() -> None:
    group = verdict(terraform({"frozen_config": {"enabled": True}}), shape())
    assert (group.verdict, "frozen_config" in group.why) == ("UNKNOWN", True)


def test_a_key_outside_of_the_node_leaves_it_packable() -> None:
    group = verdict(terraform({}, {"surge_band": "wide"}), shape())
    assert (group.verdict, "surge_band" in group.why) == ("PACKABLE", True)


def test_an_unread_key_is_named_with_its_line() -> None:
    config = {"machine_type": "n2-standard-8", "frozen": True}
    body = {"name": "p", "location": "us-central1-a", "node_count": 1, "node_config": config}
    text = json.dumps({"resource": {"google_container_node_pool": {"p": body}}}, indent=1)
    uncertainty = read_pools(text, "p.tf.json").pools[0].uncertainties[0]
    assert "p.tf.json:10, resource.google_container_node_pool.p.node_config.frozen" in uncertainty.text


def test_a_pool_without_doubt_proves_what_another_leaves_open() -> None:
    config = {"machine_type": "n2-standard-8"}
    clean = {"name": "q", "location": "us-central1-a", "node_count": 2, "node_config": config}
    odd = {**clean, "name": "p", "node_config": {"machine_type": "n2-standard-8", "frozen": True}}
    pools = pools_of_data({"resource": {"google_container_node_pool": {"p": odd, "q": clean}}}, "p.tf.json")
    assert verdict(pools, shape(4000), 2).verdict == "PROVEN"
    assert verdict(pools, shape(4000), 4).verdict == "UNKNOWN"


def test_what_no_node_of_a_doubtful_pool_can_hold_stays_a_no() -> None:
    assert verdict(terraform({"frozen": True}), shape(64000)).verdict == "NO"


def test_what_every_provider_writes_into_a_state_raises_no_doubt() -> None:
    attributes: dict[str, Any] = {"taint": [], "sandbox_config": None, "frozen": None, "odd": [], "text": ""}
    assert terraform(attributes).pools[0].uncertainties == ()


@pytest.mark.parametrize("sample", sorted(path.name for path in SAMPLES.iterdir() if path.suffix != ".md"))
def test_no_sample_holds_a_key_that_is_not_known(sample: str) -> None:
    pools = read_pools((SAMPLES / sample).read_text(), sample).pools
    assert [uncertainty.text for pool in pools for uncertainty in pool.uncertainties] == []


def test_raw_local_ssds_are_no_ephemeral_storage() -> None:
    config = {"machine_type": "c3-standard-8-lssd", "local_nvme_ssd_block_config": {"local_ssd_count": 2}}
    assert terraform(config).pools[0].allocatable["ephemeral-storage"] == 47060071478
    assert verdict(terraform(config), shape(ephemeral_storage=400 << 30)).verdict == "NO"


def test_huge_pages_come_off_the_memory_of_a_node() -> None:
    pages = {"linux_node_config": {"hugepages_config": {"hugepage_size_1g": 16}}}
    pool = terraform(pages).pools[0]
    assert PLAIN.allocatable["memory"] - pool.allocatable["memory"] == 16 << 30
    assert pool.allocatable["hugepages-1Gi"] == 16 << 30
    assert verdict(terraform(pages), shape(memory_mib=24 * 1024)).verdict == "NO"


def test_sandboxed_nodes_are_closed_to_plain_pods() -> None:
    of_terraform = terraform({"sandbox_config": {"sandbox_type": "gvisor"}})
    for pools in (of_terraform, gcloud({"sandboxConfig": {"type": "GVISOR"}})):
        assert "sandbox.gke.io/runtime=gvisor:NoSchedule" in [str(taint) for taint in pools.pools[0].taints]
        assert verdict(pools, shape()).verdict == "NO"


def test_windows_nodes_are_closed_to_linux_pods() -> None:
    pool = terraform({"image_type": "WINDOWS_LTSC_CONTAINERD"})
    assert pool.pools[0].labels["kubernetes.io/os"] == "windows"
    assert verdict(pool, shape()).verdict == "NO"


def test_a_container_gets_one_client_of_a_shared_gpu() -> None:
    sharing = {"gpu_sharing_config": {"gpu_sharing_strategy": "TIME_SHARING", "max_shared_clients_per_gpu": 4}}
    gpu = {"guest_accelerator": [{"type": "nvidia-tesla-t4", "count": 1, **sharing}], "machine_type": "n1-standard-8"}
    amounts = (("cpu", 100), ("memory", MIB), ("nvidia.com/gpu", 2), ("pods", 1))
    assert verdict(terraform(gpu), Shape(requests=amounts, gpus_at_once=2)).verdict == "NO"
    two_containers = verdict(terraform(gpu), Shape(requests=amounts))
    assert two_containers.verdict == "UNKNOWN"  # admission alone makes it tolerate the taint of GPUs


def test_terraform_pools_pay_for_calico_as_gcloud_ones_do() -> None:
    calico = terraform({}, network_policy={"enabled": True}).pools[0]
    assert (PLAIN.system["cpu"], calico.system["cpu"]) == (400, 900)
    v2 = terraform({}, network_policy={"enabled": True}, datapath_provider="ADVANCED_DATAPATH").pools[0]
    assert v2.system["cpu"] == 400


def test_a_cluster_sets_what_its_pools_leave_out() -> None:
    said = {"node_pool_defaults": {"node_config_defaults": {"gcfs_config": {"enabled": True}}}}
    pool = terraform({}, default_max_pods_per_node=32, **said).pools[0]
    assert pool.allocatable["pods"] == 32
    assert pool.allocatable["memory"] < PLAIN.allocatable["memory"]


@pytest.mark.parametrize(
    "config",
    [
        {"sole_tenant_config": {"node_affinity": {"key": "k"}}},
        {"confidential_nodes": {"enabled": True}},
        {"logging_variant": "MAX_THROUGHPUT"},
        {"kubelet_config": {"topology_manager": {"policy": "single-numa-node"}}},
        {"linux_node_config": {"swap_config": {"enabled": True}}},
    ],
)
def test_what_closes_or_shrinks_a_node_by_no_known_number_is_unknown(config: dict[str, Any]) -> None:
    assert verdict(terraform(config), shape()).verdict == "UNKNOWN"


def test_a_reservation_bounds_its_pool_where_its_count_is_known() -> None:
    affinity = {"reservation_affinity": {"consume_reservation_type": "SPECIFIC_RESERVATION", "values": ["r"]}}
    assert verdict(terraform(affinity), shape()).verdict == "PACKABLE"
    config = {"machine_type": "n2-standard-8", **affinity}
    body = {"name": "p", "location": "us-central1-a", "node_count": 9, "node_config": config}
    reservation = {"r": {"name": "r", "specific_reservation": {"count": 3}}}
    data: Any = {"resource": {"google_container_node_pool": {"p": body}, "google_compute_reservation": reservation}}
    pool = pools_of_data(data, "p.tf.json").pools[0]
    assert (pool.max_nodes, pool.min_nodes, pool.uncertainties) == (3, 3, ())
    data["resource"]["google_container_node_pool"]["q"] = {**body, "name": "q"}
    assert verdict(pools_of_data(data, "p.tf.json"), shape()).verdict == "UNKNOWN"


@pytest.mark.parametrize("toleration", [(), (Toleration(operator="Exists"),)])
def test_a_sandbox_takes_an_unknown_part_of_a_node(toleration: tuple[Toleration, ...]) -> None:
    pools = terraform({"sandbox_config": {"sandbox_type": "gvisor"}})
    asked = Shape(requests=(("cpu", 1000), ("pods", 1)), tolerations=toleration)
    assert verdict(pools, asked).verdict == ("UNKNOWN" if toleration else "NO")


def test_labels_of_symphonys_dispatcher_stand_in_for_the_machine_type() -> None:
    data = {"name": "p", "location": "us-central1-a", "node_count": 1}
    for labels, memory in (({"cpu": "8", "memory_m": "30000"}, 24 << 30), ({"room": "1"}, 2 << 30)):
        body = {**data, "node_config": {"labels": labels}}
        found = pools_of_data({"resource": {"google_container_node_pool": {"p": body}}}, "p.tf.json")
        (pool,) = found.pools
        assert memory < pool.allocatable["memory"] < memory * 2
        assert "machine_type is not set" in str(pool.notes or pool.uncertainties)
        assert verdict(found, Shape(requests=(("cpu", 99000), ("pods", 1)))).verdict == (
            "UNKNOWN" if memory > 9e9 else "NO"
        )


def test_a_pool_that_does_not_run_is_unknown() -> None:
    assert verdict(gcloud({}, status="ERROR"), shape()).verdict == "UNKNOWN"


def test_a_cluster_that_logs_at_high_throughput_leaves_its_pools_unknown() -> None:
    defaults = {"node_config_defaults": {"logging_variant": "MAX_THROUGHPUT"}}
    assert verdict(terraform({}, node_pool_defaults=defaults), shape()).verdict == "UNKNOWN"
