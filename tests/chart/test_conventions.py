"""What users of other charts expect to find: settings by the names of the field, the same here and through helm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from symphony_charts.chart.files.values_schema import schema_faults
from symphony_charts.chart.values.merge import merge
from tests.chart.harness import assert_same, chart_of, experiment_of, native_objects, write_chart

PROCESSES = {
    "web": {"command": ["serve"], "binds": "web", "exposes": "board", "lifecycle": "service"},
    "run": {"command": ["run"], "connects": "web", "image": "ghcr.io/team/run:2"},
}


def board(**said: object) -> dict[str, Any]:
    """Values that say something of what is exposed."""
    return {"services": {"board": said}}


def container(**said: object) -> dict[str, Any]:
    """Values that say something of a container."""
    return {"groups": {"web": {"containers": {"web": said}}}}


CASES: list[tuple[dict[str, Any], str]] = [
    ({"global": {"imageRegistry": "mirror:5000"}}, '"image": "mirror:5000/team/run:2"'),
    ({"global": {"imageRegistry": "mirror:5000"}}, '"image": "mirror:5000/busybox:1.37.0"'),
    (
        {"global": {"imagePullSecrets": ["a", "b"]}, "defaults": {"imagePullSecrets": [{"name": "b"}, "c"]}},
        '"imagePullSecrets": [{"name": "a"}, {"name": "b"}, {"name": "c"}]',
    ),
    ({"defaults": {"imagePullSecrets": "alone"}}, '"imagePullSecrets": [{"name": "alone"}]'),
    (
        container(image={"registry": "quay.io", "repository": "a/b", "tag": 1.5, "digest": "sha256:0"}),
        '"image": "quay.io/a/b:1.5@sha256:0"',
    ),
    (container(image={"repository": "a/b", "tag": ""}) | {"global": {"imageRegistry": "m"}}, '"image": "m/a/b"'),
    (
        container(envFrom=[{"secretRef": {"name": "keys"}}]),
        '"envFrom": [{"secretRef": {"name": "keys"}}, {"configMapRef"',
    ),
    (container(lifecycleHooks={"preStop": {"sleep": {"seconds": 5}}}), '"lifecycle": {"preStop"'),
    (board(expose="Ingress", path="/board", pathType="Exact"), '"path": "/board", "pathType": "Exact"'),
    (board(expose="Ingress", tls=[{"hosts": ["a.b"], "secretName": "cert"}]), '"tls": [{"hosts": ["a.b"]'),
    (board(expose="Gateway", gateway="infra/main", path="/b"), '{"type": "PathPrefix", "value": "/b"}'),
    (board(expose="NodePort", nodePort=30080), '"nodePort": 30080'),
    (board(expose="NodePort", externalTrafficPolicy="Local"), '"externalTrafficPolicy": "Local"'),
    (board(expose="LoadBalancer", loadBalancerClass="example.com/inner"), '"loadBalancerClass": "example.com/inner"'),
]


@pytest.mark.parametrize(("values", "shown"), CASES)
def test_a_conventional_setting_means_the_same_here_and_through_helm(
    values: dict[str, Any], shown: str, tmp_path: Path
) -> None:
    chart = chart_of(experiment_of(processes=PROCESSES))
    assert_same(chart, write_chart(chart, tmp_path), values=values)
    assert shown in json.dumps([*native_objects(chart, values=values).values()], sort_keys=True)
    assert schema_faults(merge(chart.values, values)) == []


def test_a_number_beyond_floats_is_one_text_wherever_it_stands(tmp_path: Path) -> None:
    chart = chart_of(experiment_of(processes=PROCESSES))
    assert_same(chart, write_chart(chart, tmp_path), ["labels.x=9007199254740993"])


def test_a_port_of_nodes_says_nothing_of_a_service_inside() -> None:
    chart = chart_of(experiment_of(processes=PROCESSES))
    objects = native_objects(chart, values=board(expose="ClusterIP", nodePort=30080))
    assert "nodePort" not in json.dumps([*objects.values()])


def test_a_limit_for_all_is_a_bound_and_asks_for_nothing(tmp_path: Path) -> None:
    own = {"own": {"limits": {"cpu": "3"}}, "none": {}}
    chart = chart_of(experiment_of(processes=own))
    sets = ("defaults.resources.limits.cpu=2",)
    assert_same(chart, tmp_path, sets)
    pods: Any = [item for (kind, _), item in native_objects(chart, sets).items() if kind == "Job"]
    [alone] = [c for job in pods for c in job["spec"]["template"]["spec"]["containers"] if c["name"] == "none"]
    assert (alone["resources"]["requests"]["cpu"], alone["resources"]["limits"]["cpu"]) == ("100m", "2")
    # What limits itself and asks for nothing gets what it limits itself to, as Kubernetes has it.
    [limited] = [c for job in pods for c in job["spec"]["template"]["spec"]["containers"] if c["name"] == "own"]
    assert ("cpu" in limited["resources"]["requests"], limited["resources"]["limits"]["cpu"]) == (False, "3")
