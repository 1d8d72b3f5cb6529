"""A sweep that waits on a cluster: the outcome of each trial, and the delay of a stop."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from symphony_charts.errors import CheckFailed, ToolFailed
from symphony_charts.kubernetes.releases.helm_client import Revision
from symphony_charts.kubernetes.releases.releases import Releases, ReleaseSource
from symphony_charts.kubernetes.releases.wait import Progress
from symphony_charts.prepare import Prepared, prepare_experiment
from symphony_charts.spec.data import from_data
from symphony_charts.sweep import kubernetes
from symphony_charts.sweep.kubernetes import Installation, install_trials
from symphony_charts.sweep.metrics import Stopper, TrialComparison
from symphony_charts.sweep.trial_runs import Outcome, TrialRun
from symphony_charts.sweep.trials import Trial


class Cluster:
    """A stub for a cluster: a trial takes `seconds`, and fails if its name says so."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.installed, self.removed = seconds, list[str](), list[str]()
        self._lock = threading.Lock()
        self.began: dict[str, float] = {}
        self.charts: dict[str, str] = {}
        self.runs: dict[str, str] = {}

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def find(self, name: str, namespace: str) -> Revision | None:
        if name not in self.began:
            return None
        return Revision(
            name=name, namespace=namespace, revision=1, status="deployed", chart="e", updated="2026-01-01T00:00:00Z"
        )

    def run_of(self, name: str, _namespace: str) -> str:
        return self.runs[name]

    def progress(self, name: str, _namespace: str) -> list[Progress]:
        if time.monotonic() < self.began[name] + self.seconds:
            return [Progress(title="Job/x", state="ready")]
        if "bad" in name:
            return [Progress(title="Job/x", state="failed", why="x exited with 3 (Error)", status=3)]
        return [Progress(title="Job/x", state="finished")]

    def install(self, name: str, chart: Path, *_: object, **__: object) -> None:
        with self._lock:
            self.installed.append(name)
            self.charts[name] = chart.name
            self.began[name], self.runs[name] = time.monotonic(), RUN

    def uninstall(self, name: str, _namespace: str, *, wait_s: float) -> None:
        assert wait_s > 0
        self.removed.append(name)
        del self.began[name]

    def wait(self, name: str, namespace: str, *, finished: bool, timeout_s: float) -> None:
        assert finished
        left = self.began[name] + self.seconds - time.monotonic()
        time.sleep(max(0.0, min(left, timeout_s)))
        if left > timeout_s:
            raise ToolFailed(f"not ready after {timeout_s:g} s")
        if self.progress(name, namespace)[0].state == "failed":
            raise CheckFailed("Job/x failed")


@pytest.fixture(autouse=True)
def _quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubernetes, "_LOOK_S", 0.1)
    monkeypatch.setattr(kubernetes, "run_in", lambda _: RUN)


def prepared(name: str) -> Prepared:
    return prepare_experiment(from_data({"name": name, "image": "i:1", "processes": {"p": {"command": ["x"]}}}))


def runs(*names: str) -> list[TrialRun]:
    return [TrialRun(trial=Trial(name=name, settings={}), experiment=BASE.experiment) for name in names]


BASE = prepared("e")
RUN = "the run"
SOURCE = ReleaseSource(name="e", chart=Path())


def outcomes_of(cluster: Cluster, *names: str, again: bool = False, **settings: Any) -> dict[str, Outcome]:
    there = Installation(connect=lambda: cast("Releases", cluster), namespace="n", **settings)
    going = install_trials(runs(*names), BASE, SOURCE, there, parallel=len(names), again=again)
    return {one.trial.name: one for one in going}


def test_without_waiting_all_are_only_installed() -> None:
    cluster = Cluster(30.0)
    outcomes = outcomes_of(cluster, "a", "b", is_waiting=False)
    assert {one.state for one in outcomes.values()} == {"running"}
    assert sorted(cluster.installed) == ["a", "b"]


def test_a_trial_with_a_chart_of_its_own_is_installed_from_it() -> None:
    cluster, (shared, other) = Cluster(0.0), runs("e-a", "e-b")
    there = Installation(connect=lambda: cast("Releases", cluster), namespace="n")
    trials = [shared, replace(other, own=prepared("e-b"))]
    source = replace(SOURCE, chart=Path("e"))
    assert {one.state for one in install_trials(trials, BASE, source, there, parallel=2)} == {"succeeded"}
    assert cluster.charts == {"e-a": "e", "e-b": "e-b"}


def test_a_second_sweep_keeps_what_succeeded_and_installs_what_failed_anew() -> None:
    cluster = Cluster(0.0)
    outcomes_of(cluster, "a", "bad")
    outcomes = outcomes_of(cluster, "a", "bad")
    assert (outcomes["a"].is_kept, outcomes["bad"].is_kept) == (True, False)
    assert (sorted(cluster.installed), cluster.removed) == (["a", "bad", "bad"], ["bad"])


def test_a_trial_that_still_runs_is_joined() -> None:
    cluster = Cluster(0.3)
    outcomes_of(cluster, "a", is_waiting=False)
    assert outcomes_of(cluster, "a")["a"].state == "succeeded"
    assert cluster.installed == ["a"]


def test_a_release_in_another_run_is_replaced_and_again_replaces_any() -> None:
    cluster = Cluster(0.0)
    outcomes_of(cluster, "a", "b")
    cluster.runs["a"] = "another run"
    outcomes_of(cluster, "a", "b")
    assert cluster.removed == ["a"]
    outcomes_of(cluster, "b", again=True)
    assert cluster.removed == ["a", "b"]


def test_who_stops_is_heard_at_the_next_look_and_no_other_trial_begins() -> None:
    cluster, began = Cluster(30.0), time.monotonic()

    def stop(trial: Trial) -> None:
        if trial.name == "b":
            raise KeyboardInterrupt

    there = Installation(connect=lambda: cast("Releases", cluster), namespace="n", timeout_s=600.0)
    stopped = install_trials(runs("a", "b", "c"), BASE, SOURCE, there, parallel=2, on_start=stop)
    with pytest.raises(KeyboardInterrupt):
        list(stopped)
    assert cluster.installed == ["a"]
    assert time.monotonic() - began < 10


def test_a_hopeless_trial_is_removed_is_no_failure_and_is_kept_until_all_is_asked_for_again() -> None:
    cluster, ends = Cluster(1.0), dict[str, tuple[str, str]]()
    judge = TrialComparison(metric="loss", goal="min", rule="median", grace=1)
    stopper = Stopper(judge=judge, read=lambda name: {"loss": [(1.0, 9.0 if name == "worst" else 1.0)]})

    def tell(name: str, run: str, why: str) -> None:
        ends[name] = (run, why)

    outcomes = outcomes_of(cluster, "a", "b", "c", "worst", stopper=stopper, on_end=tell)
    worst = outcomes.pop("worst")
    assert (worst.state, worst.status, worst.is_done, cluster.removed) == ("stopped", None, True, ["worst"])
    assert {one.state for one in outcomes.values()} == {"succeeded"}
    assert ends == {"worst": (RUN, "stopped early: loss 9 by step 1 is worse than the median of 3 others, 1")}
    kept = outcomes_of(cluster, "worst", stopped=dict(ends))["worst"]
    assert (kept.is_kept, kept.state, kept.error) == (True, "stopped", ends["worst"][1])
    anew = outcomes_of(cluster, "worst", again=True, stopped=dict(ends), on_end=tell)["worst"]
    assert (anew.state, ends["worst"]) == ("succeeded", (RUN, ""))
