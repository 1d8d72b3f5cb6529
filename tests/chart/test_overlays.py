"""Remaining overlays merge into the emitted pod by Kubernetes' rule and keep its hardening; real helm agrees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, reject, settings

from symphony_charts.clusters.kubernetes import render_pod
from symphony_charts.errors import SpecError
from symphony_charts.formats.data import merge_overlay
from symphony_charts.formats.merge_keys import MERGE_KEYS
from symphony_charts.spec.data import from_data
from tests.chart.harness import assert_same, chart_of, native_objects
from tests.spec.overlay_strategies import pod_overlays

HARDENED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
SECCOMP = {"seccompProfile": {"type": "RuntimeDefault"}}


def data_of(**fields: object) -> dict[str, object]:
    """Return the data of an experiment of one process `p`."""
    return {"name": "e", "image": "u:1", "processes": {"p": {"command": ["run"], "env": {"A": "1"}, **fields}}}


def container_of(sets: list[str] | None = None, **fields: Any) -> Any:
    pod: Any = pod_of(sets, **fields)
    return pod["containers"][0]


def pod_of(sets: list[str] | None = None, **fields: Any) -> Any:
    objects = native_objects(chart_of(from_data(data_of(**fields))), sets or [])
    (job,) = [item for (kind, _), item in objects.items() if kind == "Job"]
    return job["spec"]["template"]["spec"]  # type: ignore[index] # a Job


OVER_CONTAINER = [
    ({"securityContext": {"runAsUser": 1000}}, {**HARDENED, "runAsUser": 1000}),
    (
        {"securityContext": {"capabilities": {"add": ["NET_RAW"]}}},
        {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"], "add": ["NET_RAW"]}},
    ),
    ({"securityContext": {"privileged": True}}, {"privileged": True}),
    (
        {"securityContext": {"privileged": True, "capabilities": {"drop": ["X"]}}},
        {"privileged": True, "capabilities": {"drop": ["X"]}},
    ),
    ({}, HARDENED),
]


@pytest.mark.parametrize(("over", "context"), OVER_CONTAINER, ids=str)
def test_one_key_of_a_security_context_keeps_the_rest_of_the_hardening(over: object, context: object) -> None:
    assert container_of(container_overlay=over)["securityContext"] == context


def test_one_key_of_a_pods_security_context_keeps_the_rest_of_it() -> None:
    overlay = {"spec": {"securityContext": {"fsGroup": 7}}}
    assert pod_of(pod_overlay=overlay)["securityContext"] == {**SECCOMP, "fsGroup": 7}


def test_a_device_makes_its_container_privileged_and_nothing_else() -> None:
    mounts = ["type=device,src=/dev/infiniband,dst=/dev/infiniband"]
    assert container_of(mounts=mounts)["securityContext"] == {"privileged": True}


def test_helm_agrees_on_lists_and_odd_numbers_of_overlays(tmp_path: Path) -> None:
    overlay = {
        "metadata": {"finalizers": ["a/b", "a/c"]},
        "spec": {
            "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["a"]}, {}],
            "volumes": [{"name": "v", "csi": {"driver": "d", "readOnly": 1.5}}],
        },
    }
    container = {
        "volumeMounts": [{"name": "v", "mountPath": "/v"}, {"mountPath": "/etc/symph/config", "subPath": "x"}],
        "ports": [{"containerPort": 80}],
    }
    data = data_of(container_overlay=container, pod_overlay=overlay) | {"configs": {"a.txt": {"text": "x"}}}
    assert_same(chart_of(from_data(data)), tmp_path)


def test_ready_none_leaves_the_probe_of_bound_ports_away_and_one_of_an_overlay_alone(tmp_path: Path) -> None:
    fields: dict[str, Any] = {"binds": {"api": 7000}, "ready": "none"}
    assert "readinessProbe" not in container_of(**fields)
    assert_same(chart_of(from_data(data_of(**fields))), tmp_path)
    probe = {"exec": {"command": ["check"]}}
    overlaid = container_of(**fields, container_overlay={"readinessProbe": probe})
    assert overlaid["readinessProbe"]["exec"] == probe["exec"]
    assert "tcpSocket" not in overlaid["readinessProbe"]


def test_probes_name_services_as_ports(tmp_path: Path) -> None:
    fields: dict[str, Any] = {
        "binds": {"api": 7000},
        "container_overlay": {
            "ports": [{"containerPort": 80, "name": "web"}],
            "livenessProbe": {"tcpSocket": {"port": "api"}},
            "startupProbe": {"httpGet": {"port": "web"}},
            "readinessProbe": {"grpc": {"port": 5}},
        },
    }
    container = container_of(**fields)
    assert container["livenessProbe"] == {"tcpSocket": {"port": "api"}}
    assert container["startupProbe"] == {"httpGet": {"port": "web"}}
    assert container["readinessProbe"] == {"grpc": {"port": 5}}
    assert_same(chart_of(from_data(data_of(**fields))), tmp_path)


# The chart computes these instead of copying them: limits, contexts of privileged containers, known ports.
COMPUTED = ("resources", "securityContext", "readinessProbe", "livenessProbe")
# Equal to the default: a mount in a field does not set it.
UNSAID = ("readOnly", False)


def plain(overlay: dict[str, Any]) -> dict[str, Any]:
    """Return `overlay` without computed fields, and with variables as simple as those of the pod."""
    spec = dict(overlay.get("spec", {}))
    spec["containers"] = [
        {
            **{key: value for key, value in item.items() if key not in COMPUTED},
            "env": [entry for entry in item.get("env", []) if entry["name"] != "A" or "value" in entry],
        }
        for item in spec.get("containers", [])
    ]
    return {**overlay, "spec": spec}


def in_order(value: Any, field: str = "") -> Any:
    """Return `value` as Kubernetes reads it: keyed lists sorted by key, empty values and the run removed."""
    if isinstance(value, dict):
        items = {key: in_order(item, key) for key, item in value.items() if key != "symph.dev/run"}
        return {key: item for key, item in items.items() if item not in ({}, []) and (key, item) != UNSAID}
    if isinstance(value, list):
        value = [item for item in value if not isinstance(item, dict) or item.get("name") != "SYMPH_RUN"]
    if isinstance(value, list) and MERGE_KEYS.get(field):
        return sorted(map(in_order, value), key=lambda item: str(item[MERGE_KEYS[field]]))
    return list(map(in_order, value)) if isinstance(value, list) else value


MOUNTED = {"volumes": [{"name": "a", "configMap": {"name": "a"}}], "containers": [{"name": "p", "volumeMounts": [
    {"name": "a", "mountPath": "/mnt/a", "readOnly": False}
]}]}  # fmt: skip


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(pod_overlays("p").map(plain))
@example({"spec": MOUNTED})
def test_the_pod_is_the_one_without_overlays_with_the_overlay_laid_on_it(overlay: dict[str, Any]) -> None:
    bare = render_pod(from_data(data_of()), "p")
    try:
        laid = in_order(render_pod(from_data(data_of(pod_overlay=overlay)), "p"))
    except SpecError:
        reject()  # Kubernetes requires more than the overlay has.
    wanted: Any = merge_overlay(bare, overlay)
    if wanted["spec"].get("hostNetwork") is True:
        wanted["spec"].setdefault("dnsPolicy", "ClusterFirstWithHostNet")
    assert laid == in_order(wanted)
