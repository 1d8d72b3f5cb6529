"""A sweep that is waited for on a cluster: what each trial's outcome is, and how soon a stop is heard."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import cast

import pytest

from symphony_charts.errors import CheckFailed, ToolFailed
from symphony_charts.kubernetes.releases.releases import Releases
from symphony_charts.kubernetes.releases.source import ReleaseSource
from symphony_charts.spec.data import from_data
from symphony_charts.sweep import kubernetes
from symphony_charts.sweep.kubernetes import Installation, install_trials
from symphony_charts.sweep.local import TrialRun
from symphony_charts.sweep.trials import Trial


class Cluster:
    """In place of a cluster: a trial takes `seconds`, and fails where its name says so."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.installed = seconds, list[str]()
        self._lock = threading.Lock()
        self._began: dict[str, float] = {}

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def install(self, name: str, *_: object, **__: object) -> None:
        """Begin a trial."""
        with self._lock:
            self.installed.append(name)
            self._began[name] = time.monotonic()

    def wait(self, name: str, _namespace: str, *, finished: bool, timeout_s: float) -> None:
        """Wait as `Releases` does."""
        assert finished
        left = self._began[name] + self.seconds - time.monotonic()
        time.sleep(max(0.0, min(left, timeout_s)))
        if left > timeout_s:
            raise ToolFailed(f"not ready after {timeout_s:g} s")
        if "bad" in name:
            raise CheckFailed("Job/x failed")


@pytest.fixture(autouse=True)
def _quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubernetes, "_LOOK_S", 0.1)


def runs(*names: str) -> list[TrialRun]:
    """Trials by name."""
    experiment = from_data({"name": "e", "processes": {"p": {"command": ["x"]}}})
    return [TrialRun(trial=Trial(name=name, settings={}), experiment=experiment) for name in names]


def place(cluster: Cluster, wait_s: float | None) -> Installation:
    """Where they are installed."""
    return Installation(connect=lambda: cast("Releases", cluster), namespace="n", wait_s=wait_s)


SOURCE = ReleaseSource(name="e", chart=Path())


def test_a_trial_that_takes_longer_than_one_look_is_waited_for() -> None:
    outcomes = list(install_trials(runs("a", "bad"), SOURCE, place(Cluster(0.35), 60.0), parallel=2))
    assert {one.trial.name: (one.status, one.error) for one in outcomes} == {"a": (0, ""), "bad": (1, "Job/x failed")}


def test_a_trial_that_takes_too_long_has_failed() -> None:
    (outcome,) = install_trials(runs("a"), SOURCE, place(Cluster(30.0), 0.25), parallel=1)
    assert (outcome.status, outcome.seconds < 5) == (6, True)


def test_without_waiting_all_are_only_installed() -> None:
    cluster = Cluster(30.0)
    outcomes = list(install_trials(runs("a", "b"), SOURCE, place(cluster, None), parallel=1))
    assert [one.status for one in outcomes] == [0, 0]
    assert cluster.installed == ["a", "b"]


def test_who_stops_is_heard_at_the_next_look_and_no_other_trial_begins() -> None:
    cluster, began = Cluster(30.0), time.monotonic()

    def stop(trial: Trial) -> None:
        if trial.name == "b":
            raise KeyboardInterrupt

    stopped = install_trials(runs("a", "b", "c"), SOURCE, place(cluster, 600.0), parallel=2, on_start=stop)
    with pytest.raises(KeyboardInterrupt):
        list(stopped)
    assert cluster.installed == ["a"]
    assert time.monotonic() - began < 10
