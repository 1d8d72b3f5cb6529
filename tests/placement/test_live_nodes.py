"""Plans on a dump of live nodes: anti-affinity with existing pods, and pods that wait for a node."""

from __future__ import annotations

from typing import Any

import pytest

from symphony_charts.placement.fit.verdicts import Group
from symphony_charts.placement.plan import Plan
from symphony_charts.placement.pools.pool import Pools
from symphony_charts.placement.pools.readers import merge, pools_of_data
from symphony_charts.prepare import prepare_experiment
from symphony_charts.spec.data import from_data

HOST, ZONE, POOL = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "cloud.google.com/gke-nodepool"
SHARED_CPU = {"assign_to": "machine", "node_pool_name": "p", "process_per_machine": 4, "exclusive": True}
ALL_BUT_A = {"matchExpressions": [{"key": "symph.dev/group", "operator": "NotIn", "values": ["a"]}]}
OTHER_JOB_OF_A_JOBSET = {
    "matchExpressions": [
        {"key": "jobset.sigs.k8s.io/job-key", "operator": "Exists"},
        {"key": "jobset.sigs.k8s.io/job-key", "operator": "NotIn", "values": ["x"]},
    ]
}


def node(name: str, zone: str = "z-a", cpu: str = "4") -> dict[str, Any]:
    allocatable = {"cpu": cpu, "memory": "64Gi", "pods": "110"}
    labels = {HOST: name, ZONE: zone, POOL: "p", "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    return {"kind": "Node", "metadata": {"name": name, "labels": labels}, "status": {"allocatable": allocatable}}


def pod(name: str, on: str = "", cpu: str = "100m", *, status: dict[str, Any] | None = None, **more: Any) -> Any:
    """Return a pod of namespace `default`, waiting unless it is `on` a node."""
    spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}], **more.pop("spec", {})}
    metadata = {"name": name, "namespace": "default", "labels": {"app": name}, **more}
    phase = {"phase": "Running" if on else "Pending"}
    return {
        "kind": "Pod",
        "metadata": metadata,
        "spec": spec | ({"nodeName": on} if on else {}),
        "status": phase | (status or {}),
    }


def apart(selector: dict[str, Any], over: str = HOST, **scope: Any) -> dict[str, Any]:
    term = {"labelSelector": selector, "topologyKey": over, **scope}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def dump(*items: Any) -> Pools:
    return pools_of_data({"kind": "List", "apiVersion": "v1", "items": list(items)}, "live.json")


def plan(on: Pools, replicas: int = 1, cpu: str = "1", **more: Any) -> Plan:
    kind = more.pop("kind", "jobs")
    process = {"command": ["x"], "requests": {"cpu": cpu}, "replicas": replicas, **more}
    data = {"name": "t", "image": "i", "workload": {"kind": kind}, "processes": {"w": process}}
    found = prepare_experiment(from_data(data), pools=on, force=True).plan
    assert found is not None
    return found


def group(on: Pools, replicas: int = 1, cpu: str = "1", **more: Any) -> Group:
    return plan(on, replicas, cpu, **more).groups[0]


@pytest.mark.parametrize(
    "selector", [{}, {"matchLabels": {"app.kubernetes.io/name": "t"}}, {"matchLabels": {"symph.dev/group": "w"}}]
)
@pytest.mark.parametrize("over", [HOST, ZONE, POOL])
def test_the_anti_affinity_of_a_present_pod_leaves_its_domain_unknown(selector: dict[str, Any], over: str) -> None:
    found = group(dump(node("n1"), pod("db", "n1", spec=apart(selector, over))))
    assert (found.verdict, "default/db" in found.why) == ("UNKNOWN", True), found.why


@pytest.mark.parametrize("over", [HOST, ZONE, POOL])
def test_anti_affinity_to_a_present_pod_leaves_its_domain_unknown(over: str) -> None:
    overlay = {"spec": apart({"matchLabels": {"app": "db"}}, over)}
    found = group(dump(node("n1"), pod("db", "n1")), pod_overlay=overlay)
    assert (found.verdict, "default/db" in found.why) == ("UNKNOWN", True), found.why


def test_an_exclusive_experiment_and_another_one_keep_each_other_off_a_node() -> None:
    first = {"symph.dev/experiment": "first", "symph.dev/group": "a"}
    there = pod("first-a", "n1", labels=first, spec=apart(ALL_BUT_A))
    assert group(dump(node("n1"), there)).verdict == "UNKNOWN"
    plain = pod("first-a", "n1", labels=first)
    assert group(dump(node("n1"), plain)).verdict == "PROVEN"
    share = {"command": ["x"], "assign_to": SHARED_CPU}
    data = {"name": "t", "image": "i", "processes": {"w": share}}
    found = prepare_experiment(from_data(data), pools=dump(node("n1"), plain), force=True).plan
    assert found is not None
    assert found.verdict == "UNKNOWN"


def test_nodes_without_the_repelling_pod_are_enough() -> None:
    there = pod("db", "n1", spec=apart({}))
    proven = plan(dump(node("n1"), node("n2"), there), 4)
    assert proven.verdict == "PROVEN"
    assert [filled.free[proven.cluster.dimensions.index("cpu")] for filled in proven.uses[0].filled] == [0]
    assert plan(dump(node("n1"), node("n2"), there), 5).verdict == "UNKNOWN"


def test_a_group_that_may_use_a_repelling_pods_node_still_counts_as_a_rival() -> None:
    there = pod("db", "n1", spec=apart({"matchLabels": {"symph.dev/group": "a"}}))
    process = {"command": ["x"], "requests": {"cpu": "2"}}
    other = process | {"replicas": 1, "node_selector": {HOST: "n1"}, "requests": {"cpu": "3"}}
    processes = {"a": process | {"replicas": 1}, "b": other}
    data = {"name": "t", "image": "i", "processes": processes, "on_failure": "continue"}
    found = prepare_experiment(from_data(data), pools=dump(node("n1"), node("n2"), there), force=True).plan
    assert found is not None
    assert {one.name: one.verdict for one in found.groups} == {"a": "PROVEN", "b": "PACKABLE"}


@pytest.mark.parametrize(
    "there",
    [
        pod("db", "n1", spec=apart({"matchLabels": {"app": "other"}})),
        pod("db", "n1", spec=apart({}), status={"phase": "Succeeded"}),
        pod("db", "n1", spec=apart({}, "no.such/label")),
        pod("db", "n1", spec=apart(OTHER_JOB_OF_A_JOBSET, namespaceSelector={})),
    ],
)
def test_anti_affinity_that_does_not_concern_the_experiment_changes_nothing(there: Any) -> None:
    assert group(dump(node("n1"), there)).verdict == "PROVEN"


def test_an_exclusive_jobset_keeps_the_jobs_of_others_off() -> None:
    there = pod("lead", "n1", spec=apart(OTHER_JOB_OF_A_JOBSET, POOL, namespaceSelector={}))
    assert group(dump(node("n1"), there), kind="jobset").verdict == "UNKNOWN"


def test_a_present_pod_does_not_close_nodes_that_the_pool_may_still_get() -> None:
    there = pod("db", "n1", spec=apart({}))
    more = pools_of_data({"pools": [{"name": "p", "machine_type": "n2-standard-8", "max_nodes": 3}]})
    on = merge([more, dump(node("n1"), there)])
    assert group(on, 6).verdict == "PROVEN"
    assert group(on, 7).verdict == "UNKNOWN"


def test_a_node_that_takes_no_pod_of_the_size_stays_a_no() -> None:
    assert group(dump(node("n1"), pod("db", "n1", spec=apart({}))), cpu="5").verdict == "NO"


def test_pending_pods_compete_for_room() -> None:
    waiting = [pod("x", cpu="1"), pod("y", cpu="1")]
    found = plan(dump(node("n1"), *waiting), 4)
    assert (found.verdict, "pending pods" in found.groups[0].why) == ("PACKABLE", True), found.groups[0].why
    assert any("default/x, default/y" in note for note in found.notes)
    assert plan(dump(node("n1"), *waiting), 2).verdict == "PROVEN"


@pytest.mark.parametrize(
    "waiting",
    [
        pod("x", cpu="4", spec={"nodeSelector": {"no": "such"}}),
        pod("x", cpu="4", status={"phase": "Failed"}),
        pod("x", cpu="4", deletionTimestamp="2026-11-24T00:00:00Z"),
    ],
)
def test_pending_pods_that_cannot_take_the_room_change_nothing(waiting: Any) -> None:
    found = plan(dump(node("n1"), waiting), 4)
    assert (found.verdict, [note for note in found.notes if "pending" in note]) == ("PROVEN", [])


@pytest.mark.parametrize(
    "spec",
    [
        {"schedulerName": "other"},
        {"schedulingGates": [{"name": "g"}]},
        {"runtimeClassName": "gvisor"},
        {"nodeSelector": {HOST: "n1"}},
        {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]}}}},
    ],
)  # fmt: skip
def test_every_kind_of_pending_pod_competes(spec: dict[str, Any]) -> None:
    assert plan(dump(node("n1"), pod("x", cpu="1", spec=spec)), 4).verdict == "PACKABLE"


def test_a_nominated_pod_keeps_its_room_and_rules_nothing_out() -> None:
    waiting = [pod(name, cpu="1", status={"nominatedNodeName": "n1"}) for name in ("x", "y")]
    found = plan(dump(node("n1"), *waiting), 4)
    assert (found.verdict, "default/x" in found.groups[0].why) == ("UNKNOWN", True), found.groups[0].why


def test_the_victims_room_of_a_nominated_pod_is_not_counted_twice() -> None:
    there = pod("victim", "n1", cpu="1")
    waiting = pod("x", cpu="3500m", status={"nominatedNodeName": "n1"})
    assert plan(dump(node("n1"), there, waiting), 3).verdict == "UNKNOWN"
    assert plan(dump(node("n1"), node("n2", cpu="8"), there, waiting), 3).verdict == "PROVEN"


def test_the_anti_affinity_of_a_pending_pod_counts() -> None:
    waiting = pod("x", cpu="1", spec=apart({}))
    assert plan(dump(node("n1", cpu="64"), waiting)).verdict == "PACKABLE"
    assert plan(dump(node("n1", cpu="64"), node("n2", cpu="64"), waiting)).verdict == "PROVEN"


def test_a_pending_pod_that_waits_for_a_node_of_another_name_takes_no_room() -> None:
    more = pools_of_data({"pools": [{"name": "p", "machine_type": "n2-standard-8", "max_nodes": 3}]})
    waiting = pod("x", spec={"nodeSelector": {HOST: "gone"}})
    assert group(merge([more, dump(node("n1"), waiting)])).verdict == "PROVEN"


def tainted(key: str, value: str = "") -> dict[str, Any]:
    return node("n1") | {"spec": {"taints": [{"key": key, "value": value, "effect": "NoSchedule"}]}}


def cordoned() -> dict[str, Any]:
    return node("n1") | {"spec": {"unschedulable": True}}


@pytest.mark.parametrize(
    ("on", "named"),
    [
        (cordoned(), "node n1 is cordoned"),
        (node("n1") | {"status": {**node("n1")["status"], "conditions": [{"type": "Ready", "status": "False"}]}},
         "node n1 is not ready"),
        (tainted("node.kubernetes.io/disk-pressure"), "disk-pressure"),
        (tainted("node.kubernetes.io/os", "windows"), "node.kubernetes.io/os=windows"),
    ],
)  # fmt: skip
def test_what_closes_a_node_is_named(on: dict[str, Any], named: str) -> None:
    found = group(dump(on, pod("x", "n1")))
    assert (found.verdict, named in found.why) == ("NO", True), found.why


def test_a_host_port_that_a_present_pod_holds_is_named() -> None:
    door = {"containers": [{"name": "d", "image": "i", "ports": [{"containerPort": 80, "hostPort": 80}]}]}
    found = group(dump(node("n1"), pod("x", "n1", spec=door)), pod_overlay={"spec": door})
    assert (found.verdict, found.why) == ("NO", "host port 80 is taken on node n1")


def test_a_cordoned_node_says_nothing_about_new_nodes() -> None:
    more = pools_of_data({"pools": [{"name": "p", "machine_type": "n2-standard-8", "max_nodes": 3}]})
    assert group(merge([more, dump(cordoned(), pod("x", "n1"))])).verdict == "PROVEN"


@pytest.mark.parametrize("kind", ["ResourceQuota", "LimitRange"])
def test_a_quota_is_named_and_leaves_nothing_proven(kind: str) -> None:
    quota = {"kind": kind, "metadata": {"name": "q", "namespace": "default"}, "spec": {"hard": {"pods": "1"}}}
    on = dump(node("n1"), pod("x", "n1"), quota)
    found = group(on, 3)
    assert (found.verdict, f"{kind} q of namespace default" in found.why) == ("UNKNOWN", True), found.why
    assert group(on, 9).verdict == "NO"


@pytest.mark.parametrize(("reason", "verdict"), [("", "NO"), ("Infeasible", "PROVEN")])
def test_a_resize_in_place_counts_until_the_node_refuses_it(reason: str, verdict: str) -> None:
    there = pod("x", "n1", cpu="3")
    there["status"] |= {"containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}
    there["status"] |= {"conditions": [{"type": "PodResizePending", "status": "True", "reason": reason}]}
    assert group(dump(node("n1"), there), 3).verdict == verdict
    grown = pod("y", "n1", cpu="1", status={"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "3"}}]})
    assert group(dump(node("n1"), grown), 3).verdict == "NO"


def test_an_exclusive_group_keeps_a_group_of_the_same_name_of_another_experiment_off() -> None:
    made = prepare_experiment(
        from_data({"name": "t", "image": "i", "processes": {"a": {"command": ["x"], "assign_to": SHARED_CPU}}}),
        pools=dump(node("n1")),
        force=True,
    )
    (job,) = (item for item in made.objects if item["kind"] == "Job")
    template: Any = job["spec"]
    spec = template["template"]["spec"]
    there = pod(
        "t-a", "n1", labels={"symph.dev/experiment": "t", "symph.dev/group": "a"}, spec={"affinity": spec["affinity"]}
    )
    data = {"name": "other", "image": "i", "processes": {"a": {"command": ["x"], "requests": {"cpu": "1"}}}}
    found = prepare_experiment(from_data(data), pools=dump(node("n1"), there), force=True).plan
    assert found is not None
    assert found.verdict == "UNKNOWN"
