"""Sources of `symph status`; a stub cluster plays an experiment that ends between two queries."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from symphony_charts.backend.status import ExperimentStatus
from symphony_charts.cli.status_sources import Live, Place, ask_cluster
from symphony_charts.errors import NotFound, UsageError

THERE = [
    ExperimentStatus(name="rl", experiment="rl", backend="stand-in", phase="running", started=0.0, namespace=space)
    for space in ("a", "b")
]


class Watcher:
    """A cluster with an experiment `rl` in two namespaces; the first one ends when it is described."""

    backend = "stand-in"
    api = SimpleNamespace(context="here")

    def __init__(self, namespace: str | None, **_: object) -> None:
        self.namespace = namespace

    def experiments(self) -> list[ExperimentStatus]:
        return THERE

    def describe(self, name: str) -> ExperimentStatus:
        if self.namespace is None:
            raise UsageError(f'"{name}" is in several namespaces')
        if self.namespace == "a":
            raise NotFound(f'no experiment is called "{name}"')
        return THERE[1]


def test_one_that_ends_between_two_looks_hides_none_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("symphony_charts.kubernetes.backend.KubeWatcher", Watcher)
    assert [status.namespace for status, _ in ask_cluster(Place(), "rl").found] == ["b"]


def application(name: str, url: str) -> dict[str, object]:
    return {"metadata": {"name": name}, "spec": {"source": {"repoURL": url}}}


BY_SSH = application("dev-ml-rl", "git@git.example.org:ours/charts")
OURS, THEIRS = (application("dev-ml-rl", f"https://git.example.org/{team}/charts") for team in ("ours", "theirs"))


@pytest.mark.parametrize(
    ("known", "found"),
    [
        ([], None),
        ([application("dev-ml-other", "https://git.example.org/ours/charts")], None),
        ([BY_SSH], BY_SSH),
        ([THEIRS, OURS], OURS),
        ([OURS, THEIRS], OURS),
        ([THEIRS, application("dev-ml-rl", "https://git.example.org/others/charts")], None),
    ],
)
def test_of_several_applications_of_a_name_that_of_our_repository_is_read(
    known: list[dict[str, object]], found: dict[str, object] | None
) -> None:
    live = Live(found=(), applications=known)
    assert live.application("dev-ml-rl", "https://git.example.org/ours/charts") == found
