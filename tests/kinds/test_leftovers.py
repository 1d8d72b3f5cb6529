"""What nothing stops is said alike by package, lint and the notes of a release, kind by kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from symphony_charts.chart.render.model import build_model
from symphony_charts.chart.render.names import Release
from symphony_charts.kinds.leftovers import failure_difference, runs_on
from tests.chart.harness import chart_of, experiment_of, run_helm, write_chart

_PROCESSES = {
    "learner": {"command": ["x"]},
    "actor": {"command": ["x"]},
    "judge": {"command": ["x"]},
    "board": {"command": ["x"], "lifecycle": "service"},
}
_KINDS = [
    ("jobs", ["learner"], ["actor", "judge", "board"]),
    ("jobset", ["learner"], ["board"]),
    ("jobset", ["learner", "actor"], ["board"]),
    ("appwrapper", ["learner"], ["actor", "judge", "board"]),
    ("volcano", ["learner"], ["board"]),
    ("volcano", ["learner", "actor"], ["judge", "board"]),
    ("volcano", [], ["board"]),
]


@pytest.mark.parametrize(("kind", "done", "left"), _KINDS)
def test_what_runs_on_follows_from_the_kind(kind: str, done: list[str], left: list[str]) -> None:
    experiment = experiment_of(processes=_PROCESSES, workload={"kind": kind}, done_when=done)
    model = build_model(chart_of(experiment).values, Release(name="r", chart_name="r"))
    found = runs_on(model.values, model.groups, model.kind_name)
    assert sorted(group for group, _ in found) == sorted(left)


@pytest.mark.parametrize(("kind", "done", "left"), _KINDS)
def test_the_notes_of_a_release_say_it_too(kind: str, done: list[str], left: list[str], tmp_path: Path) -> None:
    experiment = experiment_of(processes=_PROCESSES, workload={"kind": kind}, done_when=done)
    folder = write_chart(chart_of(experiment), tmp_path)
    said = run_helm("4.3", "install", "r1", folder, "--dry-run=client").stdout
    assert ("Nothing stops the rest" in said) == (bool(done) and left != ["board"])
    assert "run on until the release is uninstalled: board" in said


@pytest.mark.parametrize(
    ("kind", "on_exit", "differs"),
    [
        ("jobs", "stop-all", "ends the run here, and no other group on kind jobs"),
        ("jobs", "keep", ""),
        ("appwrapper", "stop-all", "ends the run here"),
        ("jobset", "stop-all", ""),
        ("jobset", "keep", "ends the others on kind jobset, and not here"),
        ("volcano", "stop-all", ""),
        ("dijob", "stop-all", ""),
    ],
)
def test_what_one_failure_ends_is_the_same_or_said(kind: str, on_exit: str, differs: str) -> None:
    processes = {name: process for name, process in _PROCESSES.items() if name != "board"}
    experiment = experiment_of(processes=processes, workload={"kind": kind}, local={"on_exit": on_exit})
    said = failure_difference(experiment, kind)
    assert (differs in said, bool(said)) == (True, bool(differs))


def test_where_there_is_one_pod_nothing_differs() -> None:
    assert failure_difference(experiment_of(processes={"a": {"command": ["x"]}}), "jobs") == ""
