"""Imported applications on every kind of workload: their gangs, and a size independent of the number of replicas."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from symphony_charts.kinds.registry import KINDS
from symphony_charts.prepare import prepare_experiment
from symphony_charts.spec.checks.finish import finish
from tests.chart.harness import chart_of
from tests.importers.samples import app, import_appdef, role

# DI-orchestrator accepts neither labels nor networks for its pods: options that need them are refused.
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


@pytest.mark.parametrize("kind", ["jobs", "jobset", "appwrapper"])
@pytest.mark.parametrize(("least", "members"), [(None, 3), (2, 2)])
def test_the_coscheduler_places_the_pods_together(kind: str, least: int | None, members: int) -> None:
    made = import_appdef(app({**ROLE, "min_replicas": least}), {**OPTIONS, "kind": kind, "coscheduler_name": "gang"})
    objects = list(prepare_experiment(made.experiment).objects)
    (group,) = [one for one in _every(objects) if one.get("kind") == "PodGroup"]
    pods = [one for one in _every(objects) if "containers" in one.get("spec", {})]
    (pod,) = [one for one in pods if "symph.dev/group" in one["metadata"].get("labels", {})]
    assert (group["spec"]["minMember"], pod["spec"]["schedulerName"]) == (members, "gang")
    assert pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] == group["metadata"]["name"]


@pytest.mark.parametrize("kind", LABELLED)
def test_a_chart_does_not_grow_with_replicas(kind: str) -> None:
    # YAML quotes a digest without letters.
    assert abs(chart_size(kind, 900) - chart_size(kind, 100)) < 10


@pytest.mark.parametrize("kind", LABELLED)
def test_objects_grow_by_nothing_but_the_address_of_each_replica_that_is_dialled(kind: str) -> None:
    few, many = object_size(ROLE, kind, 100), object_size(ROLE, kind, 900)
    # A Workflow contains every Job twice: in itself, and in the template from which it can be submitted again.
    assert many - few < 800 * 80 * (2 if kind == "argo" else 1)
    alone = {**ROLE, "port_map": {}, "args": []}
    assert object_size(alone, kind, 100) == object_size(alone, kind, 900)


def chart_size(kind: str, replicas: int) -> int:
    """Return the bytes of all files of the chart."""
    imported = import_appdef(app({**ROLE, "num_replicas": replicas}), {**OPTIONS, "kind": kind})
    chart = chart_of(finish(imported.experiment, for_cluster=True))
    return sum(map(len, chart.files.values()))


def object_size(said: dict[str, object], kind: str, replicas: int) -> int:
    """Return the size of all objects as JSON, in characters."""
    imported = import_appdef(app({**said, "num_replicas": replicas}), {**OPTIONS, "kind": kind})
    return len(json.dumps(list(prepare_experiment(imported.experiment).objects)))


def _every(value: object) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for item in value.values():
            yield from _every(item)
    elif isinstance(value, list):
        for item in value:
            yield from _every(item)
