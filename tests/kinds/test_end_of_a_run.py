"""The processes that are alive after the end of a run are those of the spec's law on every kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from symphony_charts.kinds.base import UNTIL, is_conductor
from symphony_charts.kinds.registry import runs_on
from symphony_charts.spec.pods import pods_of, pods_that_end
from tests.chart.harness import built_of, chart_of, experiment_of, native_objects
from tests.linting import lint
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
    "volcano": {"kind": "volcano"},
    "argo": {"kind": "argo"},
}
_CONDUCTED = ("appwrapper", "mcad", "queued", "dijob")
_WATCHED = {
    "AppWrapper": ("appwrappers.workload.codeflare.dev", "workload.codeflare.dev", "appwrappers"),
    "DIJob": ("dijobs.diengine.opendilab.org", "diengine.opendilab.org", "dijobs"),
}


def _group(item: dict[str, Any]) -> str:
    return str(item["metadata"]["labels"].get("symph.dev/group"))


@pytest.mark.parametrize("kind", _KINDS)
def test_what_stays_is_what_the_spec_keeps(kind: str) -> None:
    experiment = experiment_of(processes=_PROCESSES, workload=_KINDS[kind])
    objects: list[Any] = [*native_objects(chart_of(experiment), ()).values()]
    chart = built_of(experiment)
    kept = {name for name, pod in pods_of(experiment).items() if not pod.is_finite} - pods_that_end(experiment)
    assert kept == {"board", "store"}
    assert {_group(item) for item in objects if item["kind"] == "StatefulSet"} == kept
    assert {group for group, _ in runs_on(chart, chart.values)} == kept


@pytest.mark.parametrize("kind", _CONDUCTED)
def test_a_conductor_waits_for_the_object_and_may_end_the_services_beside_it(kind: str) -> None:
    chart = chart_of(experiment_of(processes=_PROCESSES, workload=_KINDS[kind]))
    objects: list[Any] = [*native_objects(chart, ()).values()]
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
        {"apiGroups": ["batch"], "resources": ["jobs"], "resourceNames": names, "verbs": ["get", "patch"]},
        {"apiGroups": [api], "resources": [plural], "resourceNames": [whole["metadata"]["name"]], "verbs": ["get"]},
    ]


@pytest.mark.parametrize(
    ("more", "done", "ends"),
    [
        ({}, [], {"learner"}),
        ({"actor": _RUN}, ["learner"], {"learner"}),
        ({"actor": {**_RUN, "replicas": 3}}, [], 4),
        ({"actor": _RUN}, ["learner", "actor"], 2),
        ({"actor": _RUN, "judge": _RUN}, ["learner", "actor"], None),
    ],
)
def test_a_volcano_job_with_services_ends_with_one_group_or_all_finite_pods(
    more: dict[str, Any], done: list[str], ends: set[str] | int | None
) -> None:
    experiment = experiment_of(processes=_PROCESSES | more, workload={"kind": "volcano"}, done_when=done)
    objects: list[Any] = [*native_objects(chart_of(experiment), ()).values()]
    (spec,) = [item["spec"] for item in objects if item["kind"] == "Job"]
    completing = {
        task["name"]
        for task in spec["tasks"]
        for policy in task.get("policies", ())
        if policy == {"event": "TaskCompleted", "action": "CompleteJob"}
    }
    assert (spec.get("minSuccess") or completing or None) == ends
    assert ("replay" in {task["name"] for task in spec["tasks"]}) == (ends is not None)


def test_nothing_is_conducted_without_replicas_to_end() -> None:
    chart = chart_of(experiment_of(processes=_PROCESSES, workload={"kind": "appwrapper"}))
    for sets in (["groups.learner.replicas=0"], ["groups.replay.replicas=0", "groups.cache.replicas=0"]):
        made: list[Any] = [*native_objects(chart, sets).values()]
        assert not [item for item in made if item["kind"] == "Role"]


@pytest.mark.parametrize("kind", _KINDS)
def test_services_see_here_what_they_see_in_their_jobs(kind: str, tmp_path: Path) -> None:
    experiment = experiment_of(processes=_PROCESSES, workload=_KINDS[kind])
    assert compare(experiment, {}, tmp_path, probes=False).differences == ()


@pytest.mark.parametrize(("kind", "runs_as"), [("appwrapper", "Job"), ("jobs", "Job"), ("jobset", "Job of a JobSet")])
def test_the_readme_says_what_runs_a_service(kind: str, runs_as: str) -> None:
    chart = chart_of(experiment_of(processes=_PROCESSES, workload={"kind": kind}))
    assert f"| `replay` | `replay` | {runs_as} | 2 |" in chart.files["README.md"].decode()


@pytest.mark.parametrize(
    ("kind", "services", "said"),
    [("jobs", True, []), ("jobs", False, ["no service ends with"]), ("volcano", True, ["ends services at once"])],
)
def test_a_linger_without_effect_is_said(kind: str, services: bool, said: list[str]) -> None:
    processes = _PROCESSES if services else {"learner": _RUN, "actor": _RUN}
    experiment = experiment_of(processes=processes, workload={"kind": kind}, linger=5)
    found = [finding.what for finding in lint(chart_of(experiment)) if finding.path == "linger"]
    assert len(found) == len(said)
    assert all(text in what for text, what in zip(said, found, strict=True))
