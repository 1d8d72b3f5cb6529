"""optuna's own study proposes trials, learns their measurements, and resumes after an interruption."""

from __future__ import annotations

from pathlib import Path

import pytest

from symphony_charts.spec.data import from_data
from symphony_charts.spec.model import Experiment
from symphony_charts.sweep.trials import Trial, parse_axis, parse_span

pytest.importorskip("optuna", reason="the extra optuna is not installed")

from symphony_charts.sweep.search import Search

AXES = [parse_axis("opt=adam,sgd")]
SPANS = [parse_span("lr=1e-4..1", is_log=True)]


def experiment(image: str = "i") -> Experiment:
    return from_data(
        {"name": "e", "processes": {"w": {"image": image, "cmds": ["x"], "env": {"LR": "1", "OPT": "adam"}}}}
    )


def study(folder: Path, of: Experiment | None = None) -> Search:
    return Search(folder / "s.journal", of or experiment(), AXES, SPANS, metric="loss", goal="min", seed=1)


def loss(trial: Trial) -> float:
    lr = float(trial.settings["lr"])
    return abs(lr - 0.01) + (trial.settings["opt"] == "sgd")


def test_what_was_measured_leads_to_what_is_better(tmp_path: Path) -> None:
    search = study(tmp_path)
    losses = []
    for trial in search.ask(30):
        losses.append(loss(trial))
        search.tell(trial.name, losses[-1], is_early=False)
    assert sum(losses[20:]) < sum(losses[:10])


def test_a_killed_search_proposes_first_what_nobody_has_ended_and_then_the_rest(tmp_path: Path) -> None:
    first = study(tmp_path)
    asked = first.ask(5)
    done, left = next(asked), next(asked)
    first.tell(done.name, 1.0, is_early=False)
    again = study(tmp_path)
    rest = list(again.ask(5))
    assert rest[0] == left
    assert done not in rest
    assert len(rest) == 4
    assert again.trials() == [done, *rest]


def test_failures_and_early_ends_are_not_proposed_again(tmp_path: Path) -> None:
    search = study(tmp_path)
    for trial, is_early in zip(search.ask(2), (True, False), strict=True):
        search.tell(trial.name, None, is_early=is_early)
    assert list(study(tmp_path).ask(2)) == []


def test_another_experiment_is_another_study(tmp_path: Path) -> None:
    for trial in (search := study(tmp_path)).ask(3):
        search.tell(trial.name, 1.0, is_early=False)
    assert len(list(study(tmp_path, experiment("other")).ask(3))) == 3
