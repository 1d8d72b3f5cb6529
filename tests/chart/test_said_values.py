"""What a group or container says takes the place of the default, also where it is false, "", [] or {}; helm agrees."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.chart.harness import assert_same, chart_of, example_chart, experiment_of, native_objects

CASES = settings(
    max_examples=int(os.environ.get("SYMPH_SOAK", "12")), deadline=None, suppress_health_check=list(HealthCheck)
)

_TAINT = {"key": "spot", "operator": "Exists"}
_SPREAD = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}
_RESOURCES: list[object] = [
    {},
    {"requests": {}},
    {"limits": {}},
    {"requests": {"memory": "1Gi"}, "limits": {}},
    {"requests": {}, "limits": {"cpu": "2"}},
]
_OF_PODS: dict[str, list[object]] = {
    "automountServiceAccountToken": [True, False, "true", "false"],
    "serviceAccountName": ["", "runner"],
    "priorityClassName": ["", "high"],
    "schedulerName": ["", "mine"],
    "affinity": [{}, {"nodeAffinity": {"a": [1]}}, {"podAffinity": {}}],
    "topologySpreadConstraints": [[], [_SPREAD]],
    "tolerations": [[], [_TAINT]],
    "nodeSelector": [{}, {"pool": "x"}, {"pool": "y", "zone": ""}],
    "terminationGracePeriodSeconds": [0, 5],
}
_OF_CONTAINERS: dict[str, list[object]] = {
    "imagePullPolicy": ["", "Always"],
    "env": [{}, {"A": ""}, {"A": "1", "B": "$(A)"}],
    "resources": _RESOURCES,
    "securityContext": [{}, {"runAsUser": 7}, {"privileged": True}, {"capabilities": {"drop": []}}],
}
_SECURITY: list[object] = [{}, {"fsGroup": 7}, {"seccompProfile": {}}, {"runAsNonRoot": False}]


def some(table: dict[str, list[object]]) -> st.SearchStrategy[dict[str, Any]]:
    """Some of the values of a table."""
    return st.fixed_dictionaries({}, optional={key: st.sampled_from(values) for key, values in table.items()})


@st.composite
def overrides(draw: st.DrawFn) -> dict[str, Any]:
    """Values of the example `rl`: defaults, and what its agents say beside them."""
    defaults = draw(some({**_OF_PODS, **_OF_CONTAINERS, "podSecurityContext": _SECURITY}))
    container = draw(some(_OF_CONTAINERS))
    group = draw(some({**_OF_PODS, "securityContext": _SECURITY}))
    return {"defaults": defaults, "groups": {"agent": {**group, "containers": {"agent": container}}}}


@CASES
@given(overrides())
def test_helm_and_assemble_agree_on_what_is_said(values: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert_same(example_chart("rl"), Path(folder), values=values)


def pod(*, defaults: dict[str, object], group: dict[str, object], container: dict[str, object]) -> Any:
    """The pod of an experiment under these values."""
    chart = chart_of(experiment_of(processes={"p": {"command": ["x"]}}))
    values = {"defaults": defaults, "groups": {"p": {**group, "containers": {"p": container}}}}
    (job,) = native_objects(chart, values=values).values()
    return job["spec"]["template"]["spec"]  # type: ignore[index]  # parsed JSON


@pytest.mark.parametrize(
    ("key", "default", "said"),
    [
        ("serviceAccountName", "runner", ""),
        ("priorityClassName", "high", ""),
        ("schedulerName", "mine", ""),
        ("affinity", {"nodeAffinity": {"a": 1}}, {}),
        ("topologySpreadConstraints", [_SPREAD], []),
        ("tolerations", [_TAINT], []),
        ("nodeSelector", {"pool": "x"}, {}),
    ],
)
def test_a_group_takes_a_default_away(key: str, default: object, said: object) -> None:
    assert pod(defaults={key: default}, group={}, container={})[key] == default
    assert key not in pod(defaults={key: default}, group={key: said}, container={})


def test_a_group_without_a_token_gets_none_whatever_the_default() -> None:
    name = "automountServiceAccountToken"
    assert pod(defaults={name: True}, group={name: False}, container={})[name] is False


@pytest.mark.parametrize(
    ("key", "default", "said"),
    [
        ("imagePullPolicy", "Always", ""),
        ("securityContext", {"runAsUser": 7}, {}),
        ("resources", {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}, {}),
    ],
)
def test_a_container_takes_a_default_away(key: str, default: object, said: object) -> None:
    (usual,) = pod(defaults={key: default}, group={}, container={})["containers"]
    (cleared,) = pod(defaults={key: default}, group={}, container={key: said})["containers"]
    assert key in usual
    assert key not in cleared


def test_a_container_without_variables_gets_none_of_the_defaults() -> None:
    (usual,) = pod(defaults={"env": {"A": "1"}}, group={}, container={})["containers"]
    (cleared,) = pod(defaults={"env": {"A": "1"}}, group={}, container={"env": {}})["containers"]
    assert {"name": "A", "value": "1"} in usual["env"]
    assert {"name": "A", "value": "1"} not in cleared["env"]
