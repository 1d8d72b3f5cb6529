"""The cluster's own pods need resources: DaemonSets on each node, kube-system once, the owner's as they are."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from symphony_charts.errors import SpecError
from symphony_charts.placement.fit.demand import Demand, Shape
from symphony_charts.placement.plan import Plan, plan_demands
from symphony_charts.placement.pools.pool import Pools
from symphony_charts.placement.pools.readers import apply_system_option, pools_of_data, read_pools_file

SAMPLES = Path(__file__).parents[2] / "examples/pools"
MIB = 1 << 20


def pools(machine: str = "n2-standard-4", nodes: int = 3, **more: Any) -> Pools:
    return pools_of_data({"pools": [{"name": "p", "machine_type": machine, "nodes": nodes, **more}]}, "pools.yaml")


def plan(on: Pools, cpu: int, count: int) -> Plan:
    shape = Shape(requests=(("cpu", cpu), ("memory", 64 * MIB), ("pods", 1)))
    return plan_demands([Demand(shape, [("g", count)])], on)


def whole(on: Pools) -> int:
    return on.pools[0].usable["cpu"]


def test_whole_machines_leave_no_room_for_kube_system() -> None:
    answer = plan(pools(), whole(pools()), 3).groups[0]
    assert (answer.verdict, "kube-system" in answer.why) == ("UNKNOWN", True)


def test_kube_system_may_take_the_place_of_a_pod() -> None:
    answer = plan(pools(), whole(pools()) - 300, 3).groups[0]
    assert answer.verdict in ("PACKABLE", "UNKNOWN")


def test_a_group_that_does_not_fit_leaves_room_for_kube_system_in_doubt_for_no_other() -> None:
    shapes = [Shape(requests=(("cpu", cpu), ("memory", 64 * MIB), ("pods", 1))) for cpu in (2500, 900)]
    answer = plan_demands([Demand(shapes[0], [("a", 4)]), Demand(shapes[1], [("b", 2)])], pools())
    assert [group.verdict for group in answer.groups] == ["NO", "PACKABLE"]


def test_a_node_for_each_of_its_pods_is_enough() -> None:
    assert plan(pools(nodes=20), whole(pools()), 3).groups[0].verdict == "PROVEN"


def test_tainted_pools_hold_nothing_of_kube_system() -> None:
    tainted = pools(taints=[{"key": "only", "value": "rl", "effect": "NO_SCHEDULE"}])
    shape = plan(tainted, whole(tainted), 3).cluster.fits
    assert [len(rooms) for rooms in shape[1:]] == [0] * (len(shape) - 1)


def test_kube_system_grows_with_the_cluster() -> None:
    assert any("kube-dns x4" in note for note in plan(pools(nodes=90), whole(pools()), 60).notes)


@pytest.mark.parametrize("named", ["elsewhere", "file"])
def test_pools_of_an_experiment_alone_hold_no_kube_system(named: str) -> None:
    data = {"kube_system": "elsewhere", "pools": [{"name": "p", "machine_type": "n2-standard-4", "nodes": 3}]}
    on = pools_of_data(data) if named == "file" else apply_system_option(pools(), "elsewhere")
    assert plan(on, whole(on), 3).groups[0].verdict == "PROVEN"


def test_seen_load_is_not_counted_twice() -> None:
    live = read_pools_file(SAMPLES / "kubectl-nodes.json")
    assert not any("kube-dns" in note for note in plan(live, 100, 1).notes)


def test_amounts_replace_what_is_taken_for_granted() -> None:
    on = apply_system_option(pools(), "cpu=472m,memory=774Mi")
    assert (on.pools[0].system["cpu"], on.pools[0].system["memory"]) == (472, 774 * MIB)
    assert on.pools[0].usable["cpu"] == pools().pools[0].allocatable["cpu"] - 472


@pytest.mark.parametrize("text", ["cpu", "cpu=much", "gpu=1", "nowhere.json"])
def test_amounts_that_mean_nothing_are_refused(text: str) -> None:
    with pytest.raises(SpecError, match="--system"):
        apply_system_option(pools(), text)


@pytest.mark.parametrize(
    ("content", "what"),
    [(b"\xff\xfe", "cannot read the file"), (b"a: [", "not valid YAML"), (b"items: 3", "no DaemonSets or Deployments")],
)
def test_a_file_without_system_pods_is_refused_with_its_name(content: bytes, what: str, tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_bytes(content)
    with pytest.raises(SpecError, match=what) as refused:
        apply_system_option(pools(), str(file))
    assert str(file) in str(refused.value)


def pod(cpu: str, **spec: Any) -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu, "memory": "64Mi"}}
    return {"template": {"metadata": {}, "spec": {"containers": [{"name": "c", "resources": resources}], **spec}}}


def test_the_owners_own_objects_are_counted_as_they_are(tmp_path: Path) -> None:
    everywhere = {"kind": "DaemonSet", "metadata": {"name": "d"}, "spec": pod("250m")}
    other = {"kind": "DaemonSet", "metadata": {"name": "o"}, "spec": pod("1", nodeSelector={"no": "such"})}
    spec = pod("1200m") | {"replicas": 3}
    web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    (tmp_path / "own.json").write_text(json.dumps({"items": [everywhere, other, web]}))
    on = apply_system_option(pools(), str(tmp_path / "own.json"))
    assert on.pools[0].system["cpu"] == 250
    answer = plan(on, 2500, 2)
    assert any("web x3" in note for note in answer.notes)
    assert answer.groups[0].verdict == "PACKABLE"
    assert plan(on, 2500, 3).groups[0].verdict == "UNKNOWN"
    assert plan(replace(on, workloads=()), 2500, 3).groups[0].verdict == "PROVEN"


def test_a_system_pod_without_rules_leaves_all_unknown(tmp_path: Path) -> None:
    web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
    (tmp_path / "own.json").write_text(json.dumps({"items": [web | {"spec": pod("1", runtimeClassName="gvisor")}]}))
    answer = plan(apply_system_option(pools(), str(tmp_path / "own.json")), 100, 1).groups[0]
    assert (answer.verdict, "kube-system/web may take any node" in answer.why) == ("UNKNOWN", True)


def of_cluster(**addons: Any) -> Pools:
    node_pool = {"name": "p", "cluster": "c", "node_count": 2, "node_config": {"machine_type": "n2-standard-8"}}
    cluster = {"name": "c", "location": "us-central1-a", "addons_config": addons}
    resources = {"google_container_cluster": {"c": cluster}, "google_container_node_pool": {"p": node_pool}}
    return replace(pools_of_data({"resource": resources}, "p.tf.json"), workloads=())


def test_the_driver_of_cloud_storage_takes_its_share_of_each_node() -> None:
    with_driver = of_cluster(gcs_fuse_csi_driver_config={"enabled": True}).pools[0].system
    assert with_driver["cpu"] - of_cluster().pools[0].system["cpu"] == 20
    gcloud = {"name": "p", "initialNodeCount": 2, "config": {"machineType": "n2-standard-8"}}
    cluster = {"name": "c", "nodePools": [gcloud], "addonsConfig": {"gcsFuseCsiDriverConfig": {"enabled": True}}}
    assert pools_of_data(cluster, "c.json").pools[0].system == with_driver


@pytest.mark.parametrize("driver", ["gcp_filestore", "lustre", "parallelstore"])
def test_a_driver_whose_share_nobody_publishes_is_not_proven_until_the_user_says_it(driver: str) -> None:
    on = of_cluster(**{f"{driver}_csi_driver_config": {"enabled": True}})
    answer = plan(on, 1000, 1).groups[0]
    assert (answer.verdict, "set them with --system" in answer.why) == ("PACKABLE", True)
    given = replace(apply_system_option(on, "cpu=500m,memory=900Mi"), workloads=())
    without = of_cluster(**{f"{driver}_csi_driver_config": {"enabled": False}})
    assert [plan(each, 1000, 1).groups[0].verdict for each in (given, without)] == ["PROVEN", "PROVEN"]
