"""Regressions: false verdicts on the pods of a chart, where the real scheduler behaved differently from the plan."""

from __future__ import annotations

from typing import Any

import pytest

from symphony_charts.errors import SpecError
from symphony_charts.placement.pools.readers import pools_of_data
from symphony_charts.prepare import prepare_experiment
from symphony_charts.spec.data import from_data

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def verdicts(pool: dict[str, Any], **processes: dict[str, Any]) -> dict[str, str]:
    records = {}
    for name, process in processes.items():
        spec = process.pop("spec", {})
        records[name] = {"command": ["x"], "requests": {"cpu": "1"}, "pod_overlay": {"spec": spec}, **process}
    offer = {"name": "lab", "allocatable": {"cpu": "4", "memory": "16Gi"}, "nodes": 2, **pool}
    # No failure ends other processes, so that there is no conductor.
    experiment = from_data({"name": "e", "image": "a:1", "processes": records, "on_failure": "continue"})
    plan = prepare_experiment(experiment, pools=pools_of_data({"pools": [offer]}), force=True).plan
    assert plan is not None
    return {group.name: group.verdict for group in plan.groups}


def repelling(term: dict[str, Any]) -> dict[str, Any]:
    return {"affinity": {"podAntiAffinity": {REQUIRED: [term]}}}


def on_nodes(operator: str, key: str, *values: str) -> dict[str, Any]:
    expression = {"key": key, "operator": operator, **({"values": list(values)} if values else {})}
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}}}


@pytest.mark.parametrize(
    ("label", "value"), [("kubernetes.io/arch", "amd64"), ("kubernetes.io/os", "linux"), (ZONE, "z-a")]
)
def test_the_labels_that_every_kubelet_sets_are_known(label: str, value: str) -> None:
    assert verdicts({"zones": ["z-a"]}, a={"spec": {"nodeSelector": {label: value}}}) == {"a": "PROVEN"}


def test_every_node_has_a_name() -> None:
    assert verdicts({}, a={"spec": on_nodes("Exists", HOST)}) == {"a": "PROVEN"}


def test_a_node_of_some_name_may_come() -> None:
    assert verdicts({}, a={"spec": on_nodes("In", HOST, "n1")}, b={}) == {"a": "UNKNOWN", "b": "UNKNOWN"}


def test_one_node_may_be_in_any_zone_of_its_pool() -> None:
    there = verdicts({"nodes": 1, "zones": ["z-a", "z-b"]}, a={"spec": {"nodeSelector": {ZONE: "z-b"}}})
    assert there == {"a": "UNKNOWN"}


def test_who_is_kept_off_a_zone_by_another_is_not_proven() -> None:
    term = {"labelSelector": {"matchLabels": {"symph.dev/group": "b"}}, "topologyKey": ZONE}
    assert verdicts({"zones": ["z-a"]}, a={"spec": repelling(term)}, b={}) == {"a": "UNKNOWN", "b": "UNKNOWN"}


def test_a_label_of_the_job_controller_may_repel() -> None:
    selector = {"matchExpressions": [{"key": "batch.kubernetes.io/job-name", "operator": "Exists"}]}
    alone = repelling({"labelSelector": selector, "topologyKey": HOST})
    assert verdicts({}, a={"replicas": 3, "spec": alone}) == {"a": "UNKNOWN"}


def test_a_term_without_a_selector_repels_no_pod() -> None:
    assert verdicts({}, a={"replicas": 3, "spec": repelling({"topologyKey": HOST})}) == {"a": "PROVEN"}


def test_a_term_with_an_empty_selector_repels_every_pod() -> None:
    alone = repelling({"labelSelector": {}, "topologyKey": HOST})
    assert verdicts({}, a={"replicas": 3, "spec": alone}) == {"a": "NO"}


def door(address: str) -> dict[str, Any]:
    port = {"containerPort": 80, "hostPort": 80, "hostIP": address}
    return {"containers": [{"name": "door", "image": "b:1", "ports": [port]}]}


@pytest.mark.parametrize(("address", "shares"), [("127.0.0.2", True), ("127.0.0.1", False), ("", False)])
def test_ports_of_different_addresses_share_a_node(address: str, shares: bool) -> None:
    found = verdicts({"nodes": 1}, a={"spec": door("127.0.0.1")}, b={"spec": door(address)})
    assert (set(found.values()) == {"PROVEN"}) is shares


def test_a_port_of_a_step_is_none_of_the_node() -> None:
    port = {"containerPort": 80, "hostPort": 80}
    step = {"initContainers": [{"name": "i", "image": "b:1", "ports": [port]}]}
    assert verdicts({"nodes": 1}, a={"replicas": 2, "spec": step}) == {"a": "PROVEN"}


def test_a_device_whose_taint_admission_tolerates_is_neither_excluded_nor_proven() -> None:
    gpu = {"allocatable": {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": 1}}
    taint = {"taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]}
    trainer = {"containers": [{"name": "t", "image": "b:1", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}
    assert verdicts({**gpu, **taint}, a={"spec": trainer}) == {"a": "UNKNOWN"}


def test_what_is_sent_to_a_node_by_name_is_never_excluded_nor_counted_against_others() -> None:
    sent = {"requests": {"cpu": "3"}, "spec": {"nodeName": "elsewhere"}}
    assert verdicts({"nodes": 1}, a=sent, b={"requests": {"cpu": "3"}}) == {"a": "UNKNOWN", "b": "UNKNOWN"}


def test_what_fits_no_node_is_excluded_whoever_else_is_there() -> None:
    found = verdicts({}, a={"spec": {"nodeName": "elsewhere"}}, b={"requests": {"cpu": "5"}})
    assert found["b"] == "NO"


def test_overhead_of_a_runtime_class_is_not_proven_away() -> None:
    assert verdicts({"nodes": 1}, a={"spec": {"runtimeClassName": "kata"}}, b={})["b"] == "UNKNOWN"


@pytest.mark.parametrize(
    ("level", "verdict"),
    [
        ({"limits": {"cpu": "3"}}, "PROVEN"),
        ({"requests": {"cpu": "2"}}, "NO"),
        ({"requests": {"cpu": "2"}, "limits": {"cpu": "2"}}, "NO"),
        ({"limits": {"memory": "9Gi"}}, "PROVEN"),
    ],
)
def test_resources_of_a_pod_are_defaulted_as_the_api_server_does(level: dict[str, Any], verdict: str) -> None:
    asked = {"replicas": 4, "requests": {"cpu": "1", "memory": "1Gi"}, "spec": {"resources": level}}
    assert verdicts({"nodes": 1}, a=asked) == {"a": verdict}


@pytest.mark.parametrize("level", [{"limits": {"cpu": "500m"}}, {"requests": {"cpu": "500m"}}])
def test_resources_of_a_pod_below_its_containers_are_refused(level: dict[str, Any]) -> None:
    with pytest.raises(SpecError, match="is below"):
        verdicts({}, a={"spec": {"resources": level}})
