"""What an import of a DIJob says came over is what the operator would make of ours, by one set of rules for both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from symphony_charts.importers.common.field_reader import Fields
from symphony_charts.importers.common.input_file import from_data
from symphony_charts.importers.common.names import Volumes
from symphony_charts.importers.common.pod import read_pod
from symphony_charts.importers.common.report import Imported, Log, Report
from symphony_charts.importers.dijob.importer import import_dijob
from symphony_charts.importers.dijob.proof import compared
from symphony_charts.spec import data


def proved(change: Callable[[dict[str, Any]], None]) -> Report:
    """The report on a job of two tasks whose experiment was changed behind the importer's back."""
    pod = {"containers": [{"name": "di-container", "image": "a:1", "command": ["run"], "env": [{"name": "A"}]}]}
    tasks = [{"name": name, "replicas": 2, "template": {"spec": pod}} for name in ("one", "two")]
    metadata = {"name": "job"}
    job = {"apiVersion": "diengine.opendilab.org/v2alpha1", "metadata": metadata, "spec": {"tasks": tasks}}
    log = Log()
    parts = [
        (name, read_pod(Fields(task["template"], f"[{at}]", log), Volumes(), []))
        for at, (name, task) in enumerate(zip(("one", "two"), tasks, strict=True))
    ]
    values = data.to_data(import_dijob(from_data({**job, "kind": "DIJob"}, "job")).experiment)
    change(values)
    return compared(Imported(experiment=data.from_data(values)), {**job, "kind": "DIJob"}, "", parts, {}).report


def without_the_second(values: dict[str, Any]) -> None:
    del values["processes"]["two"]
    values["workload"] = {"kind": "dijob"}


def test_equal_pods_under_equal_names_and_ranks_are_proof() -> None:
    report = proved(lambda _values: None)
    assert report.notes == ()
    assert "everything came over; the pods are the operator's own" in report.summary()


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda values: values["processes"]["one"].update(env={}), "[0].spec.containers[0].env"),
        (without_the_second, "[1].spec"),
    ],
)
def test_what_the_operators_pods_have_and_ours_lack_is_lost(
    change: Callable[[dict[str, Any]], None], place: str
) -> None:
    report = proved(change)
    assert place in [note.path for note in report.lost]
    assert "everything" not in report.summary()


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda values: values["processes"]["one"].update(replicas=3), "spec.tasks"),
        (lambda values: values.update(order=["two", "one"]), "spec.tasks"),
        (lambda values: values["workload"].update(retries=7), "spec.backoffLimit"),
        (lambda values: values["workload"].update(dijob={"clean_pod_policy": "All"}), "spec.cleanPodPolicy"),
        (lambda values: values["processes"]["one"].update(command=["walk"]), "[0].spec.containers[0].command"),
        (lambda values: values["processes"]["one"].update(env={"A": "", "B": "1"}), "[0].spec.containers[0].env"),
    ],
)
def test_what_the_operator_would_do_otherwise_is_named(change: Callable[[dict[str, Any]], None], place: str) -> None:
    assert place in [note.path for note in proved(change).changed]
