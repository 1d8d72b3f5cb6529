"""TorchX's run options, mounts and resources reach the pods on every kind of workload, and never grow with replicas."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from symphony_charts.importers.torchx.importer import import_appdef
from symphony_charts.kinds.registry import KINDS
from symphony_charts.prepare import prepare_experiment
from symphony_charts.spec.checks.finish import finish
from tests.chart.harness import chart_of
from tests.importers.samples import app, role

# DI-orchestrator takes neither labels nor networks for its pods: an option that asks for them is refused.
LABELLED = [kind for kind in KINDS if kind != "dijob"]
INSTANCE = "node.kubernetes.io/instance-type"
OPTIONS: dict[str, object] = {
    "namespace": "ml",
    "image_repo": "registry.example.com/i",
    "service_account": "trainers",
    "priority_class_name": "high",
    "image_secret": "pull",
    "network": "fast",
    "reserve": True,
}
ROLE = role(
    image="sha256:" + "a" * 64,
    num_replicas=3,
    max_retries=2,
    retry_policy="REPLICA",
    args=["${app_id}", "${replica_id}", "${rank0_env}"],
    port_map={"c10d": 29500},
    resource={"cpu": 8, "gpu": 2, "memMB": 32000, "capabilities": {INSTANCE: "p4d"}, "devices": {"x.com/nic": 1}},
    mounts=["type=bind,src=/host,dst=/data,readonly", "type=volume,src=claim,dst=/ckpt", "type=device,src=/dev/fuse"],
)


def pods(value: object) -> Iterator[dict[str, Any]]:
    """Every pod template inside some objects, those that a Workflow makes by their text included."""
    if isinstance(value, dict):
        spec = value.get("spec")
        if isinstance(spec, dict) and "containers" in spec:
            yield value
        for key, item in value.items():
            yield from pods(yaml.safe_load(item) if key == "manifest" else item)
    elif isinstance(value, list):
        for item in value:
            yield from pods(item)


def objects(kind: str, **options: object) -> list[dict[str, Any]]:
    imported = import_appdef(app(ROLE), {**OPTIONS, "kind": kind, **options})
    return list(prepare_experiment(imported.experiment).objects)


def pod(kind: str, **options: object) -> dict[str, Any]:
    """The pods of the role, which are all alike."""
    found = [one for one in pods(objects(kind, **options)) if one["metadata"].get("labels", {}).get("symph.dev/group")]
    assert found
    assert all(one == found[0] for one in found)
    return found[0]


@pytest.mark.parametrize("kind", LABELLED)
def test_options_of_the_pod_reach_it(kind: str) -> None:
    spec = pod(kind)["spec"]
    assert spec["serviceAccountName"] == "trainers"
    assert spec["priorityClassName"] == "high"
    assert spec["imagePullSecrets"] == [{"name": "pull"}]
    assert spec["containers"][0]["image"] == "registry.example.com/i:" + "a" * 64


@pytest.mark.parametrize("kind", LABELLED)
def test_the_network_is_an_annotation_that_multus_reads(kind: str) -> None:
    annotations = pod(kind)["metadata"]["annotations"]
    assert annotations["k8s.v1.cni.cncf.io/networks"] == "fast"
    assert annotations["sidecar.istio.io/inject"] == "false"


@pytest.mark.parametrize("kind", LABELLED)
def test_the_instance_type_selects_the_node(kind: str) -> None:
    assert pod(kind)["spec"]["nodeSelector"] == {INSTANCE: "p4d"}


@pytest.mark.parametrize("kind", LABELLED)
def test_reserve_lowers_the_requests_alone(kind: str) -> None:
    assert pod(kind)["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "8000m", "memory": "32000M", "nvidia.com/gpu": "2", "x.com/nic": "1"},
        "requests": {"cpu": "7900m", "memory": "30976M"},
    }


@pytest.mark.parametrize("kind", LABELLED)
def test_mounts_reach_the_container_and_a_device_makes_it_privileged(kind: str) -> None:
    spec = pod(kind)["spec"]
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    seen = {
        mount["mountPath"]: (volumes[mount["name"]], mount.get("readOnly", False))
        for mount in spec["containers"][0]["volumeMounts"]
    }
    assert seen["/data"][0]["hostPath"]["path"] == "/host"
    assert seen["/data"][1] is True
    assert seen["/ckpt"][0]["persistentVolumeClaim"]["claimName"] == "claim"
    assert seen["/dev/fuse"][0]["hostPath"]["path"] == "/dev/fuse"
    assert seen["/dev/shm"][0]["emptyDir"]["medium"] == "Memory"
    assert spec["containers"][0]["securityContext"]["privileged"] is True


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_device_nothing_is_privileged(kind: str) -> None:
    imported = import_appdef(app(role()), {"kind": kind})
    assert "privileged" not in json.dumps(list(prepare_experiment(imported.experiment).objects))


@pytest.mark.parametrize("kind", ["jobs", "jobset", "appwrapper"])
def test_the_coscheduler_places_the_pods_together(kind: str) -> None:
    made = objects(kind, coscheduler_name="gang")
    (group,) = [one for one in _every(made) if one.get("kind") == "PodGroup"]
    assert group["spec"]["minMember"] == 3
    template = pod(kind, coscheduler_name="gang")
    assert template["spec"]["schedulerName"] == "gang"
    assert template["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] == group["metadata"]["name"]


@pytest.mark.parametrize("kind", ["jobs", "jobset", "appwrapper"])
def test_a_gang_waits_for_the_least_number_of_replicas(kind: str) -> None:
    imported = import_appdef(app({**ROLE, "min_replicas": 2}), {"coscheduler_name": "g", "kind": kind, **OPTIONS})
    made = list(prepare_experiment(imported.experiment).objects)
    (group,) = [one for one in _every(made) if one.get("kind") == "PodGroup"]
    assert group["spec"]["minMember"] == 2


def test_volcano_waits_for_the_least_number_of_replicas() -> None:
    imported = import_appdef(app({**ROLE, "min_replicas": 2}), {"kind": "volcano", **OPTIONS})
    (job,) = [one for one in list(prepare_experiment(imported.experiment).objects) if one["kind"] == "Job"]
    assert _spec(job)["minAvailable"] == 2


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("jobs", '"backoffLimitPerIndex": 2'),
        ("jobset", '"backoffLimitPerIndex": 2'),
        ("appwrapper", '"workload.codeflare.dev.appwrapper/retryLimit": "2"'),
        ("volcano", '"maxRetry": 3'),
    ],
)
def test_retries_are_said_as_each_kind_has_them(kind: str, said: str) -> None:
    assert said in json.dumps(objects(kind))


def test_priority_is_the_job_s_own_where_a_kind_has_such_a_thing() -> None:
    imported = import_appdef(app(ROLE), {**OPTIONS, "appwrapper_version": "v1beta1", "priority": 7})
    assert imported.experiment.workload.priority == 7


@pytest.mark.parametrize("kind", LABELLED)
def test_a_chart_does_not_grow_with_replicas(kind: str) -> None:
    assert chart_size(kind, 100) == chart_size(kind, 900)


@pytest.mark.parametrize("kind", LABELLED)
def test_objects_grow_by_nothing_but_the_address_of_each_replica_that_is_dialled(kind: str) -> None:
    few, many = object_size(ROLE, kind, 100), object_size(ROLE, kind, 900)
    # A Workflow has every Job twice: in itself, and in the template that it can be submitted from again.
    assert many - few < 800 * 80 * (2 if kind == "argo" else 1)
    alone = {**ROLE, "port_map": {}, "args": []}
    assert object_size(alone, kind, 100) == object_size(alone, kind, 900)


def chart_size(kind: str, replicas: int) -> int:
    """Bytes of all files of the chart."""
    imported = import_appdef(app({**ROLE, "num_replicas": replicas}), {**OPTIONS, "kind": kind})
    chart = chart_of(finish(imported.experiment, for_cluster=True))
    return sum(map(len, chart.files.values()))


def object_size(said: dict[str, object], kind: str, replicas: int) -> int:
    """Bytes of all objects as JSON."""
    imported = import_appdef(app({**said, "num_replicas": replicas}), {**OPTIONS, "kind": kind})
    return len(json.dumps(list(prepare_experiment(imported.experiment).objects)))


def _spec(item: dict[str, object]) -> dict[str, Any]:
    spec = item["spec"]
    assert isinstance(spec, dict)
    return spec


def _every(value: object) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for item in value.values():
            yield from _every(item)
    elif isinstance(value, list):
        for item in value:
            yield from _every(item)
