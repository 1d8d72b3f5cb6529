"""Code that the watching verbs share, without a backend: matching, times, waiting, the current experiment."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symphony_charts.backend.protocol import chosen_at, find_instances, match_names, set_current
from symphony_charts.backend.status import ExperimentStatus, InstanceStatus, Phase, overall
from symphony_charts.cli.inside import parse_place
from symphony_charts.cli.options import seconds
from symphony_charts.errors import NotFound
from symphony_charts.local.backend import LocalWatcher
from symphony_charts.local.runs import Run


def instance(name: str, phase: Phase = "running", group: str = "", *, is_service: bool = False) -> InstanceStatus:
    process, _, index = name.rpartition("-")
    number = int(index) if process else 0
    return InstanceStatus(
        name=name,
        process=process or name,
        group=group,
        index=number,
        phase=phase,
        state=phase,
        is_service=is_service,
    )


SERVICE = instance("s", "running", is_service=True)
STATUS = ExperimentStatus(
    name="rl",
    experiment="rl",
    backend="tmux",
    phase="running",
    started=0.0,
    instances=(instance("agent-0"), instance("agent-1"), instance("eval", group="g")),
)


@pytest.mark.parametrize(
    ("word", "names"),
    [
        ("agent", ["agent-0", "agent-1"]),
        ("agent-1", ["agent-1"]),
        ("agent/1", ["agent-1"]),
        ("g/eval", ["eval"]),
        ("eval/0", ["eval"]),
        ("g/eval/0", ["eval"]),
        ("nobody", []),
        ("", []),
    ],
)
def test_words_name_processes_and_replicas(word: str, names: list[str]) -> None:
    assert [one.name for one in find_instances(STATUS.instances, word)] == names


@given(st.lists(st.text("ab-", min_size=1, max_size=4), unique=True), st.text("ab-", min_size=1, max_size=3))
def test_every_match_contains_the_word_and_an_exact_one_is_alone(names: list[str], word: str) -> None:
    found, is_exact = match_names(names, word)
    assert set(found) <= {name for name in names if word in name}
    assert is_exact == (word in names)
    assert not is_exact or found == [word]


@pytest.mark.parametrize(
    ("phases", "phase"),
    [
        (["succeeded", "succeeded"], "succeeded"),
        (["succeeded", "running"], "running"),
        (["succeeded", "pending"], "running"),
        (["pending", "pending"], "pending"),
        (["failed", "running"], "failed"),
        (["stopped", "succeeded"], "stopped"),
        ([], "pending"),
    ],
)
def test_the_phase_of_all_together(phases: list[Phase], phase: Phase) -> None:
    assert overall(instance("a", one) for one in phases) == phase
    # Services do not keep an experiment running.
    assert not phases or overall([*(instance("a", one) for one in phases), SERVICE]) == phase


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("learner:/results", ("learner", "/results")),
        ("g/learner:/a:b", ("g/learner", "/a:b")),
        ("agent/3:x", ("agent/3", "x")),
        (":/results", ("", "/results")),
        ("./a:b", None),
        ("/a:b", None),
        ("plain", None),
    ],
)
def test_the_colon_makes_a_place_remote(text: str, place: tuple[str, str] | None) -> None:
    assert parse_place(text) == place


def test_times_have_units() -> None:
    assert [seconds(text) for text in ("90", "90s", "1.5m", "2h", "1d")] == [90, 90, 90, 7200, 86400]
    with pytest.raises(ValueError, match="is not a time"):
        seconds("soon")


def test_the_current_experiment_of_one_place_is_not_that_of_another() -> None:
    set_current("tmux", "rl")
    set_current("kube/prod", "big")
    assert (chosen_at("tmux"), chosen_at("kube/prod"), chosen_at("kube/dev")) == ("rl", "big", None)
    set_current("tmux", None)
    assert chosen_at("tmux") is None


@pytest.mark.parametrize("name", ["..", ".", "", "../local", "a/../../x"])
def test_a_name_that_leads_elsewhere_is_no_experiment(name: str) -> None:
    # A dry run only: with a broken guard, the test must not remove a folder.
    with pytest.raises(NotFound):
        LocalWatcher().delete(name, dry_run=True)


def test_what_is_no_folder_of_ours_is_not_removed(private_places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    foreign = private_places / "foreign" / "run"
    foreign.mkdir(parents=True)
    monkeypatch.setattr("symphony_charts.local.backend.find_run", lambda _name: Run(foreign))
    monkeypatch.setattr("symphony_charts.local.backend.runs_of", lambda _name: [Run(foreign)])
    with pytest.raises(NotFound, match="symph may not have made this folder"):
        LocalWatcher().delete("foreign")
    assert foreign.is_dir()
