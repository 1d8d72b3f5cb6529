"""Plans of whole experiments: verdicts with their reasons, shares, slices, gangs, live load, launch features."""

from __future__ import annotations

from cProfile import Profile
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symphony_charts.errors import PlacementError, SpecError
from symphony_charts.placement.assign import apply
from symphony_charts.placement.fit.verdicts import Group
from symphony_charts.placement.plan import Plan
from symphony_charts.placement.pools.pool import Pools
from symphony_charts.placement.pools.readers import pools_of_data, read_pools
from symphony_charts.placement.report import explain, plan_data
from symphony_charts.prepare import prepare_experiment
from symphony_charts.spec.checks.finish import finish
from symphony_charts.spec.data import from_data
from symphony_charts.spec.model import Experiment

SAMPLES = Path(__file__).parents[2] / "examples/pools"


def sample(name: str = "pools.yaml") -> Pools:
    return read_pools((SAMPLES / name).read_text(), name)


def nodes(cpu: str = "4", memory: str = "8Gi", count: int = 2, **more: Any) -> Pools:
    """Return one pool of plain nodes without system pods."""
    pool = {"name": "a", "allocatable": {"cpu": cpu, "memory": memory}, "nodes": count, **more}
    return pools_of_data({"pools": [pool]})


def experiment(processes: dict[str, Any], **more: Any) -> Experiment:
    return from_data({"name": "rl", "image": "img", "processes": processes, **more})


def check(experiment: Experiment, pools: Pools) -> Plan:
    return cast("Plan", prepare_experiment(experiment, pools=pools, force=True).plan)


def asking(cpu: str = "1", memory: str = "1Gi", **more: Any) -> dict[str, Any]:
    return {"requests": {"cpu": cpu, "memory": memory}, **more}


def group(plan: Plan, name: str) -> Group:
    return next(group for group in plan.groups if group.name == name)


def test_a_request_above_the_node_is_a_no_with_the_difference_and_the_largest_request() -> None:
    pools = pools_of_data({"pools": [{"name": "std8", "machine_type": "n1-standard-8", "max_nodes": 9}]})
    lost = group(check(experiment({"learner": asking("7950m")}), pools), "learner")
    assert lost.verdict == "NO"
    assert lost.why == "needs 7.95 CPU; n1-standard-8 offers 7.51 after system pods"
    assert lost.next == "request 7.51 CPU"


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["n1-standard-8", "n2-highcpu-96", "e2-standard-4", "n1-highmem-16"]), st.integers(1, 20))
def test_as_many_shares_fit_a_machine_as_were_asked_for(machine: str, parts: int) -> None:
    pools = pools_of_data(
        {"kube_system": "elsewhere", "pools": [{"name": "p", "machine_type": machine, "max_nodes": 1}]}
    )
    share = {"assign_to": {"assign_to": "machine", "node_pool_name": "p", "process_per_machine": parts}}
    assert check(experiment({"x": {**share, "replicas": parts}}), pools).verdict == "PROVEN"
    assert check(experiment({"x": {**share, "replicas": parts + 1}}), pools).verdict == "NO"


FETCH = {"prepare": {"fetch": {"requests": {"cpu": "2500m", "memory": "1Gi"}}}}


@pytest.mark.parametrize(
    ("data", "amounts"),
    [
        (
            {"groups": {"g": {"processes": {"main": asking("2"), "side": asking("1", lifecycle="service")}}}},
            {"cpu": 3000},
        ),
        ({"groups": {"g": {"processes": {"main": asking("2"), "side": asking("1")}}}, **FETCH}, {"cpu": 3000}),
        ({"processes": {"p": asking("1")}, **FETCH}, {"cpu": 2500}),
        ({"processes": {"p": {"limits": {"cpu": "3", "memory": "2Gi"}}}}, {"cpu": 3000}),
        ({"processes": {"p": {}}}, {"cpu": 100, "memory": 128 << 20, "pods": 1}),
    ],
    ids=["sidecar", "smaller step", "larger step", "limits for requests", "default of the chart"],
)
def test_a_pod_requests_its_containers_or_its_largest_step(data: dict[str, Any], amounts: dict[str, int]) -> None:
    shape = check(from_data({"name": "rl", "image": "img", **data}), nodes()).cluster.demands[0].shape
    assert {name: shape.amount(name) for name in amounts} == amounts


def test_too_many_pods_for_the_maximum_say_how_many_nodes_more() -> None:
    lost = group(check(experiment({"p": asking("4", replicas=5)}), nodes()), "p")
    assert (lost.verdict, lost.why) == ("NO", "2 of 5 fit; a is full at its maximum of 2 nodes")
    assert lost.next == "3 nodes more of a (no price) make it PROVEN; or request less"


def test_pod_slots_are_a_resource() -> None:
    exp = experiment({"p": asking("1", replicas=3)})
    assert check(exp, nodes("9", "9Gi", 1, max_pods=2)).verdict == "NO"
    assert check(exp, nodes("9", "9Gi", 1, max_pods=3)).verdict == "PROVEN"


def test_of_several_pools_it_is_counted_which_keep_the_pod_out_by_what() -> None:
    taint = {"key": "team", "value": "rl", "effect": "NoSchedule"}
    pools = [
        {"name": "small", "machine_type": "n2-standard-8", "max_nodes": 4},
        {"name": "smaller", "machine_type": "n2-standard-4", "max_nodes": 4},
        {"name": "big", "machine_type": "n2-standard-80", "max_nodes": 4, "taints": [taint]},
    ]
    lost = group(check(experiment({"p": asking("40")}), pools_of_data({"pools": pools})), "p")
    assert lost.why.endswith("offers 7.51 after system pods (3 pools: 1 tainted, 2 too small)")


def test_a_selector_that_nobody_answers_is_named() -> None:
    lost = group(check(experiment({"p": asking(node_selector={"room": "13"})}), sample()), "p")
    assert (lost.why, lost.next) == ("no pool has the label room=13", "nodes have 12")


UNKNOWN_LABELS = ["cloud.google.com/private-node", "cloud.google.com/gke-stack-type", "node.k8s.io/of-an-add-on"]
"""Labels that GKE or Kubernetes may put on nodes, and that the model of a node does not compute."""
POOL_FILES: list[dict[str, Any]] = [
    {"pools": [{"name": "p", "machine_type": "n2-standard-8", "nodes": 2}]},
    {"pools": [{"name": "p", "allocatable": {"cpu": "8", "memory": "16Gi"}, "nodes": 2}]},
    {"resource": {"google_container_node_pool": {"p": {
        "name": "p", "location": "us-central1-a", "node_count": 2, "node_config": {"machine_type": "n2-standard-8"}}}}},
]  # fmt: skip


def required(key: str, operator: str, *values: str) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": key, "operator": operator, **({"values": values} if values else {})}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    return {"pod_overlay": {"spec": {"affinity": affinity}}}


@pytest.mark.parametrize("label", UNKNOWN_LABELS)
@pytest.mark.parametrize("pools", POOL_FILES)
def test_a_label_of_gke_that_no_model_knows_is_unknown(pools: dict[str, Any], label: str) -> None:
    on = pools_of_data(pools, "p.tf.json" if "resource" in pools else "p.yaml")
    for asked in (
        {"node_selector": {label: "x"}},
        required(label, "In", "x"),
        required(label, "Exists"),
        required(label, "NotIn", "x"),
        required(label, "DoesNotExist"),
    ):
        found = group(check(experiment({"p": asking(**asked)}), on), "p")
        assert (found.verdict, label in found.why) == ("UNKNOWN", True), found.why


@pytest.mark.parametrize("pools", POOL_FILES)
def test_a_label_that_the_model_knows_to_be_missing_is_a_no(pools: dict[str, Any]) -> None:
    on = pools_of_data(pools, "p.tf.json" if "resource" in pools else "p.yaml")
    everything = {"machine_type": "n1-standard-8", "max_nodes": 1, "zones": ["us-east1-b"], "reservation": "r"}
    everything |= {"gpu": {"type": "nvidia-tesla-v100", "count": 1, "sharing": "time-sharing", "clients": 2}}
    rich = pools_of_data({"pools": [{"name": "rich", "provisioning": "spot", "placement": "near", **everything}]})
    known = {**rich.pools[0].labels, "room": "12", "node-role.kubernetes.io/control-plane": ""}
    for key, value in known.items():
        if key in on.pools[0].labels or on.pools[0].leaves_open(key):
            continue
        asked = asking(node_selector={key: value})
        assert group(check(experiment({"p": asked}), on), "p").verdict == "NO", key
        other = asking(**required(key, "DoesNotExist"))
        assert group(check(experiment({"p": other}), on), "p").verdict == "PROVEN", key


def test_a_zone_is_unknown_only_where_the_pool_has_none() -> None:
    asked = experiment({"p": asking(node_selector={"topology.kubernetes.io/zone": "us-east1-b"})})
    entry = {"name": "p", "machine_type": "n2-standard-8", "nodes": 2}
    assert check(asked, pools_of_data({"pools": [entry]})).verdict == "UNKNOWN"
    assert check(asked, pools_of_data({"pools": [{**entry, "zones": ["us-east1-c"]}]})).verdict == "NO"
    assert check(asked, pools_of_data({"pools": [{**entry, "zones": ["us-east1-c", "us-east1-d"]}]})).verdict == "NO"


def test_a_label_that_live_nodes_do_not_have_is_a_no() -> None:
    for label in UNKNOWN_LABELS:
        asked = experiment({"p": asking(node_selector={label: "x"})})
        assert check(asked, sample("kubectl-nodes.json")).verdict == "NO"


def test_an_unknown_label_on_nodes_that_are_too_small_is_a_no_for_their_size() -> None:
    asked = asking("40", node_selector={UNKNOWN_LABELS[0]: "x"})
    lost = group(check(experiment({"p": asked}), nodes()), "p")
    assert (lost.verdict, "needs 40 CPU" in lost.why) == ("NO", True), lost.why


def test_nodes_with_the_label_are_enough_beside_others_that_may_have_it() -> None:
    label = UNKNOWN_LABELS[0]
    pools = [
        {"name": "a", "allocatable": {"cpu": "4", "memory": "8Gi"}, "nodes": 1, "labels": {label: "x"}},
        {"name": "b", "allocatable": {"cpu": "4", "memory": "8Gi"}, "nodes": 1, "labels": {"room": "b"}},
    ]
    on = pools_of_data({"pools": pools})
    choosy = asking(replicas=4, node_selector={label: "x"})
    assert check(experiment({"p": choosy}), on).verdict == "PROVEN"
    assert check(experiment({"p": {**choosy, "replicas": 5}}), on).verdict == "UNKNOWN"
    crowded = experiment({"p": choosy, "q": asking(replicas=4, node_selector={"room": "b"})})
    assert group(check(crowded, on), "q").verdict == "PACKABLE"


def test_an_explanation_does_not_say_that_a_label_is_missing_where_it_is_unknown() -> None:
    asked = experiment({"a": asking(node_selector={UNKNOWN_LABELS[0]: "x"})})
    found = explain(check(asked, nodes()), "a")
    assert found is not None
    pools: Any = found["pools"]
    assert pools[0]["obstacles"] == [f"its label {UNKNOWN_LABELS[0]} is unknown"]


def test_a_taint_keeps_pods_away_until_it_is_tolerated() -> None:
    tainted = nodes(taints=[{"key": "team", "value": "rl", "effect": "NoSchedule"}])
    lost = group(check(experiment({"p": asking()}), tainted), "p")
    assert (lost.verdict, lost.why) == ("NO", "does not tolerate team=rl:NoSchedule of a")
    tolerant = asking(tolerations=[{"key": "team", "operator": "Exists"}])
    assert check(experiment({"p": tolerant}), tainted).verdict == "PROVEN"


def test_a_taint_that_is_only_preferred_keeps_nobody_away() -> None:
    assert check(experiment({"p": asking()}), nodes(taints=[{"key": "k", "effect": "PreferNoSchedule"}])).fits


def test_an_exclusive_share_keeps_the_others_off_its_node() -> None:
    share = {"assign_to": "machine", "node_pool_name": "std8", "process_per_machine": 4, "exclusive": True}
    pools = pools_of_data({"pools": [{"name": "std8", "machine_type": "n1-standard-8", "max_nodes": 2}]})
    plan = check(experiment({"a": {"assign_to": share}, "b": asking()}), pools)
    assert [filled.count for use in plan.uses for filled in use.filled] == [1, 1]


def test_a_gang_is_as_certain_as_its_least_certain_member() -> None:
    gang = experiment({"a": asking(), "b": asking("40")}, workload={"gang": "kueue", "queue": "q"})
    assert {one.verdict for one in check(gang, nodes()).groups} == {"NO"}
    loose = experiment({"a": asking(), "b": asking("40")})
    assert group(check(loose, nodes()), "a").verdict == "PROVEN"


def slice_of(replicas: int, chips: str = "4") -> Experiment:
    process = {"replicas": replicas, "requests": {"cpu": "10"}, "limits": {"google.com/tpu": chips}}
    return experiment({"trainer": process}, placement={"tpu_topology": "4x4"})


def test_a_tpu_slice_is_filled_as_a_whole() -> None:
    plan = check(slice_of(4), sample("gcloud-node-pools.json"))
    assert (plan.verdict, [(use.pool.name, use.nodes) for use in plan.uses]) == ("PROVEN", [("tpu-v5e-4x4", 4)])


def test_a_slice_that_would_be_left_half_empty_is_a_no() -> None:
    lost = group(check(slice_of(3), sample("gcloud-node-pools.json")), "trainer")
    assert (lost.verdict, lost.why) == ("NO", "slice 4x4 has 4 hosts, trainer has 3 pods")
    assert lost.next == "set replicas to 4"


def test_a_pod_of_a_slice_takes_all_chips_of_its_host() -> None:
    assert "must request all 4 chips" in group(check(slice_of(4, "2"), sample("gcloud-node-pools.json")), "trainer").why


def test_what_runs_already_is_taken_off() -> None:
    pools = sample("kubectl-nodes.json")
    assert check(experiment({"p": asking("3500m", replicas=2)}), pools).verdict == "PROVEN"
    assert check(experiment({"p": asking("3500m", replicas=3)}), pools).verdict == "NO"


def test_spot_pods_go_to_spot_pools_alone() -> None:
    exp = experiment({"p": asking(tolerations=[{"operator": "Exists"}])}, placement={"spot": True})
    assert [use.pool.name for use in check(exp, sample("gcloud-node-pools.json")).uses] == ["l4-spot"]


def test_launch_features_become_labels_and_annotations() -> None:
    placement = {"spot": True, "reservation": "r1", "topology": "preferred:block", "compact": True}
    settled, _ = apply(experiment({"p": {}}, placement=placement), None)
    selector = settled.processes["p"].node_selector
    assert selector == {
        "cloud.google.com/gke-spot": "true",
        "cloud.google.com/reservation-name": "r1",
        "cloud.google.com/gke-placement-group": "rl",
    }
    assert settled.processes["p"].annotations == {
        "kueue.x-k8s.io/podset-preferred-topology": "cloud.google.com/gce-topology-block"
    }


def test_exclusive_placement_is_jobsets_annotation_or_anti_affinity() -> None:
    key = "cloud.google.com/gke-nodepool"
    of_jobset, _ = apply(experiment({"p": {}}, placement={"exclusive": key}, workload={"kind": "jobset"}), None)
    assert of_jobset.annotations == {"alpha.jobset.sigs.k8s.io/exclusive-topology": key}
    of_jobs, _ = apply(experiment({"p": {}}, placement={"exclusive": key}), None)
    assert key in str(of_jobs.processes["p"].pod_overlay)


@pytest.mark.parametrize("key", ["cloud.google.com/gke-nodepool", "kubernetes.io/hostname"])
def test_a_jobset_whose_jobs_need_a_domain_each_is_unknown(key: str) -> None:
    two = experiment(
        {"a": asking("1", replicas=5), "b": asking()}, placement={"exclusive": key}, workload={"kind": "jobset"}
    )
    plan = check(two, nodes(count=9))
    assert {one.name: (one.verdict, key in one.why) for one in plan.groups} == {
        "a": ("UNKNOWN", True),
        "b": ("UNKNOWN", True),
    }
    too_large = experiment({"a": asking("9")}, placement={"exclusive": key}, workload={"kind": "jobset"})
    assert check(too_large, nodes()).verdict == "NO"


def test_a_service_beside_an_exclusive_jobset_is_still_proven() -> None:
    placement, workload = {"exclusive": "kubernetes.io/hostname"}, {"kind": "jobset"}
    both = experiment(
        {"a": asking(), "s": asking(lifecycle="service", until="uninstall")}, placement=placement, workload=workload
    )
    plan = check(both, nodes())
    assert {one.name: one.verdict for one in plan.groups} == {"a": "UNKNOWN", "s": "PROVEN"}


def test_pods_with_gpus_tolerate_the_taint_of_gpu_nodes() -> None:
    settled, _ = apply(experiment({"p": {"gpus": 1}}), None)
    assert [one.key for one in settled.processes["p"].tolerations] == ["nvidia.com/gpu"]


def test_applying_twice_changes_nothing() -> None:
    half = {"assign_to": "machine", "node_pool_name": "std8", "process_per_machine": 2, "exclusive": True}
    placement = {"spot": True, "exclusive": "kubernetes.io/hostname", "topology": "block"}
    once, _ = apply(experiment({"p": {"assign_to": half}, "q": {"gpus": 1}}, placement=placement), sample())
    twice, decisions = apply(once, sample())
    assert (twice, decisions) == (once, [])
    assert finish(once) == once


def test_what_a_process_says_itself_wins_over_its_share() -> None:
    share = {"assign_to": {"assign_to": "machine", "node_pool_name": "std8"}, "requests": {"memory": "1Gi"}}
    settled, _ = apply(experiment({"p": share}), sample())
    assert settled.processes["p"].requests == {"cpu": "7510m", "memory": "1Gi"}


def test_decisions_are_recorded_with_their_reason() -> None:
    share = {"assign_to": {"assign_to": "gpu", "node_pool_name": "v100"}}
    settled, decisions = apply(experiment({"p": share}), sample())
    assert settled.processes["p"].annotations == {"symphony-charts/assigned-to": "gpu: v100"}
    assert "n1-highmem-8 of v100" in decisions[0].reason


def test_all_wrong_uses_are_told_at_once() -> None:
    wrong = {
        "a": {"assign_to": {"assign_to": "machine", "node_pool_name": "nope"}},
        "b": {"assign_to": {"assign_to": "gpu", "node_pool_name": "std8"}},
    }
    with pytest.raises(SpecError) as failure:
        apply(experiment(wrong), sample())
    assert [problem.path for problem in failure.value.problems] == [
        "processes.a.assign_to.node_pool_name",
        "processes.b.assign_to.node_pool_name",
    ]


def test_a_member_that_leaves_the_pool_open_follows_its_group() -> None:
    asked = {"assign_to": {"assign_to": "resource", "cpu": 1}}
    on_gpu = {"assign_to": {"assign_to": "gpu", "node_pool_name": "v100"}}
    for members in ({"a": asked, "b": on_gpu}, {"b": on_gpu, "a": asked}):
        exp = from_data({"name": "rl", "image": "img", "groups": {"g": {"processes": members}}})
        assert apply(exp, sample())[0].groups["g"].node_selector == {"cloud.google.com/gke-nodepool": "v100"}
    machines = {"small": "n1-standard-4", "large": "n1-standard-16"}
    pools = pools_of_data({"pools": [{"name": n, "machine_type": m, "max_nodes": 1} for n, m in machines.items()]})
    half = {"assign_to": {"assign_to": "resource", "cpu": 3}}
    both = from_data({"name": "rl", "image": "img", "groups": {"g": {"processes": {"a": half, "b": half}}}})
    assert apply(both, pools)[0].groups["g"].node_selector == {"cloud.google.com/gke-nodepool": "large"}


def test_members_of_a_group_cannot_go_to_different_pools() -> None:
    members = {
        "a": {"assign_to": {"assign_to": "machine", "node_pool_name": "std8"}},
        "b": {"assign_to": {"assign_to": "gpu", "node_pool_name": "v100"}},
    }
    with pytest.raises(SpecError, match="is one pod, but"):
        from_data({"name": "rl", "image": "img", "groups": {"g": {"processes": members}}})


def test_shares_without_a_cluster_file_are_refused_with_the_way_out() -> None:
    with pytest.raises(SpecError, match="needs the node pools") as failure:
        apply(experiment({"p": {"assign_to": {"assign_to": "machine", "node_pool_name": "x"}}}), None)
    assert "--pools FILE" in failure.value.next


def test_a_named_pool_without_a_cluster_file_is_selected_by_gkes_label() -> None:
    asked = {"assign_to": "node_pool", "node_pool_name": "x", "cpu": 2.5, "memory_m": 4096, "gpu_count": 1}
    settled, _ = apply(experiment({"p": {"assign_to": asked}}), None)
    assert settled.processes["p"].node_selector == {"cloud.google.com/gke-nodepool": "x"}
    assert (settled.processes["p"].requests, settled.processes["p"].gpus) == ({"cpu": "2.5", "memory": "4096Mi"}, 1)


def test_the_order_of_processes_changes_no_plan() -> None:
    processes = {f"p{i}": asking(f"{i % 5 + 1}00m", replicas=i) for i in range(1, 20)}
    forward = plan_data(check(experiment(processes), sample()))
    backward = plan_data(check(experiment(dict(reversed(processes.items()))), sample()))
    assert msgspec.json.encode(forward) == msgspec.json.encode(backward)


def test_a_refusal_names_the_group_the_file_and_the_way_out() -> None:
    refusal = check(experiment({"a": asking(), "p": asking("400")}, on_failure="continue"), sample()).refusal()
    assert isinstance(refusal, PlacementError)
    assert refusal.exit_code == 4
    assert refusal.what.startswith("1 of 2 groups cannot be scheduled: p needs 400 CPU")
    assert refusal.at == "pools.yaml"


def test_a_plan_that_fits_has_no_refusal() -> None:
    plan = check(experiment({"a": asking()}), sample())
    assert (plan.refusal(), plan.summary()) == (None, "PROVEN on pools.yaml: 1 of n1-standard-8")


def test_explain_tells_why_not_the_others() -> None:
    found = explain(check(experiment({"a": asking("20", node_selector={"room": "12"})}), sample()), "a")
    assert found is not None
    pools: Any = found["pools"]
    assert [(row["pool"], row["pods"]) for row in pools] == [("lab", 1), ("std8", 0), ("v100", 0)]
    assert "needs 20 CPU, a node offers 7.51 CPU" in pools[1]["obstacles"]


@pytest.mark.parametrize(
    ("rule", "named"),
    [
        ({"pod_overlay": {"spec": {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "x"}}}]}}}}},
         "required pod affinity"),
        ({"pod_overlay": {"spec": {"topologySpreadConstraints": [
            {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]}}},
         "topology spread over zone"),
        ({"pod_overlay": {"spec": {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchExpressions": [
                {"key": "workload.codeflare.dev/appwrapper", "operator": "Exists"}]}}]}}}}},
         "labels that a controller sets"),
        ({"replicas": 8, "in": {"placement": {"topology": "required:kubernetes.io/hostname"},
                                "workload": {"gang": "kueue", "queue": "q"}}}, "podset-required-topology"),
        ({"replicas": 8, "in": {"placement": {"topology": "required:kubernetes.io/hostname"},
                                "workload": {"gang": "native", "gang_version": "v1alpha2"}}}, "topology of its gang"),
    ],
)  # fmt: skip
def test_a_rule_about_more_than_one_node_is_unknown_by_name(rule: dict[str, Any], named: str) -> None:
    settings = {key: value for key, value in rule.items() if key != "in"}
    more = rule.get("in", {})
    found = group(check(experiment({"p": asking(**settings)}, **more), nodes()), "p")
    assert (found.verdict, named in found.why) == ("UNKNOWN", True), found.why
    lost = check(experiment({"p": asking("9", **{**settings, "replicas": 1})}, **more), nodes())
    assert group(lost, "p").verdict == "NO"


def test_placement_that_is_exclusive_over_a_pool_is_proven_without_other_experiments() -> None:
    plan = check(experiment({"p": asking()}, placement={"exclusive": "cloud.google.com/gke-nodepool"}), nodes())
    assert plan.verdict == "PROVEN"


def test_the_pod_that_ends_the_run_needs_a_place_too() -> None:
    plan = check(experiment({"a": asking(), "s": asking(lifecycle="service")}), nodes())
    assert {one.name: one.verdict for one in plan.groups} == {"a": "PROVEN", "s": "PROVEN", "(conductor)": "PROVEN"}


def test_five_times_the_processes_need_five_times_the_calls() -> None:
    calls = []
    for count in (1, 100, 500):
        many = experiment({f"p{i}": {"requests": {"cpu": f"{100 + i}m"}} for i in range(count)})
        profile = Profile()
        profile.runcall(prepare_experiment, many, pools=nodes(count=900), force=True)
        calls.append(sum(entry.callcount for entry in profile.getstats()))
    assert calls[2] < 5.05 * calls[1]
