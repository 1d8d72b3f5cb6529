"""The processes that are alive after the end of a run are those of the spec's law on every kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from symphony_charts.kinds.base import UNTIL, is_conductor
from symphony_charts.kinds.registry import runs_on
from symphony_charts.spec.pods import pods_of, pods_that_end
from tests.chart.harness import built_of, chart_of, experiment_of, native_objects
from tests.local.parity.compare import compare

_RUN = {"command": ["x"]}
_SERVICE = {**_RUN, "lifecycle": "service"}
_PROCESSES = {
    "learner": {**_RUN, "connects": "replay"},
    "replay": {**_SERVICE, "replicas": 2, "binds": "replay"},
    "cache": {**_SERVICE, "binds": "cache", "connects": "replay"},
    "board": {**_SERVICE, "exposes": "web"},
    "store": {**_SERVICE, "until": "uninstall"},
}
_KINDS: dict[str, dict[str, Any]] = {
    "appwrapper": {"kind": "appwrapper"},
    "mcad": {"kind": "appwrapper", "appwrapper": {"version": "v1beta1"}},
    "queued": {"kind": "appwrapper", "gang": "kueue", "queue": "q"},
    "dijob": {"kind": "dijob"},
}
_WATCHED = {
    "AppWrapper": ("appwrappers.workload.codeflare.dev", "workload.codeflare.dev", "appwrappers"),
    "DIJob": ("dijobs.diengine.opendilab.org", "diengine.opendilab.org", "dijobs"),
}


def _group(item: dict[str, Any]) -> str:
    return str(item["metadata"]["labels"].get("symph.dev/group"))


@pytest.mark.parametrize("kind", _KINDS)
def test_what_stays_is_what_the_spec_keeps(kind: str) -> None:
    experiment = experiment_of(processes=_PROCESSES, workload=_KINDS[kind])
    objects = native_objects(chart_of(experiment), ()).values()
    chart = built_of(experiment)
    kept = {name for name, pod in pods_of(experiment).items() if not pod.is_finite} - pods_that_end(experiment)
    assert kept == {"board", "store"}
    assert {_group(item) for item in objects if item["kind"] == "StatefulSet"} == kept
    assert {group for group, _ in runs_on(chart, chart.values)} == kept


@pytest.mark.parametrize("kind", _KINDS)
def test_a_conductor_waits_for_the_object_and_may_end_the_services_beside_it(kind: str) -> None:
    objects = list(native_objects(chart_of(experiment_of(processes=_PROCESSES, workload=_KINDS[kind])), ()).values())
    (whole,) = [item for item in objects if item["kind"] in _WATCHED]
    beside = {
        _group(item): item
        for item in objects
        if item["kind"] == "Job" and UNTIL in item["metadata"].get("annotations", {})
    }
    assert set(beside) == {"cache", "replay"}
    assert not [item for item in beside.values() if "kueue.x-k8s.io/queue-name" in item["metadata"]["labels"]]
    names = [beside[group]["metadata"]["name"] for group in sorted(beside)]
    (conductor,) = [item for item in objects if item["kind"] == "Job" and is_conductor(item)]
    resource, api, plural = _WATCHED[whole["kind"]]
    (container,) = conductor["spec"]["template"]["spec"]["containers"]
    state = ".status.state" if kind == "mcad" else ".status.phase"
    assert container["args"] == ["0", "stop", resource, state, whole["metadata"]["name"], "--", "--", *names]
    (role,) = [item for item in objects if item["kind"] == "Role"]
    assert role["rules"] == [
        {"apiGroups": [api], "resources": [plural], "resourceNames": [whole["metadata"]["name"]], "verbs": ["get"]},
        {"apiGroups": ["batch"], "resources": ["jobs"], "resourceNames": names, "verbs": ["get", "patch"]},
    ]


def test_nothing_is_conducted_without_replicas_to_end() -> None:
    chart = chart_of(experiment_of(processes=_PROCESSES, workload={"kind": "appwrapper"}))
    for sets in (["groups.learner.replicas=0"], ["groups.replay.replicas=0", "groups.cache.replicas=0"]):
        assert not [item for item in native_objects(chart, sets).values() if item["kind"] == "Role"]


@pytest.mark.parametrize("kind", _KINDS)
def test_services_see_here_what_they_see_in_their_jobs(kind: str, tmp_path: Path) -> None:
    experiment = experiment_of(processes=_PROCESSES, workload=_KINDS[kind])
    assert compare(experiment, {}, tmp_path, probes=False).differences == ()
