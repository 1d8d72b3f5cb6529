"""Only a comparison with the other tool's own pods that finds no loss says that everything came over."""

from __future__ import annotations

from typing import Any

import pytest

from symphony_charts.importers.common.input_file import from_data, read
from symphony_charts.importers.common.proof import OriginalPod, proven
from symphony_charts.importers.common.report import Imported
from symphony_charts.importers.symphony.importer import import_legacy
from symphony_charts.spec import data
from tests.importers.samples import EXAMPLES


def compared(container: dict[str, Any], pod: dict[str, Any] | None = None, **process: object) -> Imported:
    """One process, compared with the pod that another tool would make."""
    made = data.from_data({"name": "x", "processes": {"p": {"image": "a:1", "command": ["run"], **process}}})
    spec = {"restartPolicy": "Never", **(pod or {}), "containers": [{"image": "a:1", "command": ["run"], **container}]}
    original = OriginalPod(pod="p", spec=spec, place="spec", processes=[("p", "spec.containers[0]")])
    return proven(Imported(experiment=made), [original], "Tool")


def test_equal_pods_are_proof_that_everything_came_over() -> None:
    report = compared({"env": [{"name": "A", "value": "1"}]}, env={"A": "1"}).report
    assert (report.changed, report.lost) == ((), ())
    assert "everything came over; the pods are Tool's own; ours also have" in report.summary()
    assert "securityContext (security.level)" in report.added


@pytest.mark.parametrize(
    ("container", "pod", "process", "added"),
    [
        ({}, {}, {}, ["default requests"]),
        ({"resources": {"limits": {"cpu": 1}}}, {}, {"limits": {"cpu": "1"}}, ["default requests"]),
        (
            {"resources": {"requests": {"cpu": 1, "memory": "1Gi"}}},
            {},
            {"requests": {"cpu": "1", "memory": "1Gi"}},
            ["a limit of"],
        ),
        (
            {"resources": {"limits": {"nvidia.com/gpu": 1, "memory": "1Gi", "cpu": 1}}},
            {"tolerations": [{"key": "a", "operator": "Exists"}]},
            {"gpus": 1, "limits": {"memory": "1Gi", "cpu": "1"}, "tolerations": [{"key": "a", "operator": "Exists"}]},
            ["a toleration"],
        ),
    ],
)
def test_what_our_defaults_give_is_listed(
    container: dict[str, Any], pod: dict[str, Any], process: dict[str, object], added: list[str]
) -> None:
    report = compared(container, pod, **process).report
    assert report.notes == ()
    ours = [one for one in report.added if one.startswith(("default", "a limit", "a toleration"))]
    assert [one for one in ours if one.startswith(tuple(added))] == ours
    assert len(ours) == len(added)


@pytest.mark.parametrize(
    ("container", "pod", "place"),
    [
        ({"env": [{"name": "B", "value": "1"}]}, {}, "spec.containers[0].env"),
        ({"stdin": True}, {}, "spec.containers[0].stdin"),
        ({"resources": {"limits": {"cpu": "1"}}}, {}, "spec.containers[0].resources.limits"),
        ({"volumeMounts": [{"name": "v", "mountPath": "/v"}]}, {}, "spec.containers[0].volumeMounts"),
        ({}, {"schedulerName": "own"}, "spec.schedulerName"),
        ({}, {"tolerations": [{"key": "a"}]}, "spec.tolerations"),
    ],
)
def test_what_only_the_other_pod_has_is_lost(container: dict[str, Any], pod: dict[str, Any], place: str) -> None:
    report = compared(container, pod).report
    assert [note.path for note in report.lost] == [place]
    assert "everything" not in report.summary()


@pytest.mark.parametrize(
    ("container", "pod", "process", "place"),
    [
        ({"command": ["walk"]}, {}, {}, "spec.containers[0].command"),
        ({}, {"restartPolicy": "Always"}, {}, "spec.restartPolicy"),
        ({}, {}, {"env": {"B": "1"}}, "spec.containers[0].env"),
        ({}, {}, {"node_selector": {"a": "b"}}, "spec"),
    ],
)
def test_what_differs_or_is_only_ours_is_changed(
    container: dict[str, Any], pod: dict[str, Any], process: dict[str, object], place: str
) -> None:
    report = compared(container, pod, **process).report
    assert [note.path for note in report.changed] == [place]
    assert "everything came over" in report.summary()


def test_another_spelling_of_an_amount_is_no_difference() -> None:
    theirs = {"resources": {"requests": {"cpu": 0.5, "memory": "1Gi"}}}
    assert compared(theirs, requests={"cpu": "500m", "memory": "1024Mi"}).report.notes == ()


def test_what_is_limited_is_requested_and_no_is_no_more_than_nothing() -> None:
    theirs = {
        "resources": {"limits": {"nvidia.com/gpu": 1}},
        "volumeMounts": [{"name": "v", "mountPath": "/v", "readOnly": False}],
    }
    volumes = {"volumes": [{"name": "v", "emptyDir": {}}]}
    mount = {"mounts": [{"volume": "v", "at": "/v"}]}
    made = data.from_data(
        {
            "name": "x",
            "volumes": {"v": {"type": "empty_dir"}},
            "processes": {"p": {"image": "a:1", "command": ["run"], "gpus": 1, **mount}},
        }
    )
    spec = {"restartPolicy": "Never", **volumes, "containers": [{"image": "a:1", "command": ["run"], **theirs}]}
    original = OriginalPod(pod="p", spec=spec, place="spec", processes=[("p", "c")])
    assert proven(Imported(experiment=made), [original], "Tool").report.notes == ()


def test_what_makes_no_chart_is_not_called_complete() -> None:
    report = compared({}, image=None).report
    assert report.unproven == 'Tool\'s pods: process "p" has no image'
    assert "everything" not in report.summary()


def test_a_dump_of_symphony_is_compared_with_symphonys_own_pods() -> None:
    source = read((EXAMPLES / "symphony-kube.yaml").read_bytes(), "dump")
    report = import_legacy(source).report
    assert report.like == "Symphony"
    assert [note.path for note in report.changed] == ["process_groups[0].pod_yml.data.spec.restartPolicy"]


def test_a_volume_that_only_the_pod_knows_is_lost() -> None:
    pod = {"data": {"spec": {"restartPolicy": "Never", "volumes": [{"name": "odd", "emptyDir": {}}]}}}
    container = {"data": {"name": "p", "image": "a:1", "args": ["x"]}, "mounted_volumes": []}
    process = {"name": "p", "container_image": "a:1", "container_yml": container, "pod_yml": pod}
    report = import_legacy(from_data({"name": "x", "processes": [process]}, "dump")).report
    assert [note.path for note in report.lost] == ["processes[0].pod_yml.data.spec.volumes[0]"]
