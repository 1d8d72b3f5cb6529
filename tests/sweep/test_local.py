"""Trials in real tmux: finished ones are kept, others are run, and those that take too long are ended."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from symphony_charts.local import up
from symphony_charts.local.backend import LocalWatcher
from symphony_charts.local.runs import live_runs
from symphony_charts.spec import data as builder
from symphony_charts.spec import files
from symphony_charts.spec.files import SpecFile
from symphony_charts.spec.pods import allocate
from symphony_charts.sweep import local
from symphony_charts.sweep.local import in_parallel, look_here, metrics_of, run_trials, series_here
from symphony_charts.sweep.metrics import Stopper, TrialComparison
from symphony_charts.sweep.record import Sweep, find_sweep, remember, remember_end
from symphony_charts.sweep.trial_runs import TIMED_OUT, Outcome, TrialRun, prepare_trials
from symphony_charts.sweep.trials import Trial, parse_axis, trials
from symphony_charts.system.user_folders import state_dir
from tests.local.runs import until

SAYS = "echo $X >> ran; exit $X"


@pytest.fixture(autouse=True)
def _tools(need_tool: Callable[[str], str]) -> None:
    need_tool("tmux")


def spec_of(folder: Path, line: str) -> SpecFile:
    path = folder / "e.yaml"
    path.write_text(f"name: e\nprocesses: {{w: {{cmds: ['{line}'], env: {{X: '0'}}, restart: never}}}}\n")
    return files.read(path)


def runs_of(spec: SpecFile, values: str) -> list[TrialRun]:
    return prepare_trials(spec, trials("e", [parse_axis(f"x={values}")]), None)


def swept(spec: SpecFile, values: str = "0", *, again: bool = False, timeout_s: float | None = None) -> list[Outcome]:
    return list(run_trials(runs_of(spec, values), spec, parallel=2, again=again, timeout_s=timeout_s))


def test_what_succeeded_is_kept_and_what_failed_runs_again(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, SAYS)
    swept(spec, "0,3")
    outcomes = {one.trial.name: one for one in swept(spec, "0,3")}
    kept = [(outcomes[name].state, outcomes[name].is_kept) for name in ("e-x0", "e-x3")]
    assert kept == [("succeeded", True), ("failed", False)]
    assert sorted((tmp_path / "ran").read_text().split()) == ["0", "3", "3"]


def test_services_that_go_on_after_a_run_end_with_a_trial(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, SAYS)
    board = "  board: {cmds: ['sleep 300'], lifecycle: service, exposes: board, ready: {exec: ['true']}}\n"
    text = spec.path.read_text().replace("processes: {w: {", "processes:\n  w: {").replace("}}\n", "}\n")
    spec.path.write_text(text + board)
    (outcome,) = swept(files.read(spec.path))
    assert (outcome.state, outcome.is_done, live_runs()) == ("succeeded", True, [])


def test_again_runs_what_is_done_anew(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, SAYS)
    swept(spec)
    (outcome,) = swept(spec, again=True)
    assert not outcome.is_kept
    assert (tmp_path / "ran").read_text() == "0\n0\n"


def test_a_trial_of_another_experiment_is_not_kept(tmp_path: Path) -> None:
    swept(spec_of(tmp_path, SAYS))
    (outcome,) = swept(spec_of(tmp_path, f"{SAYS} # changed"))
    assert not outcome.is_kept


def test_a_trial_that_runs_already_is_joined(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, "echo $X >> ran; while ! test -e go; do sleep 0.05; done")
    (run,) = runs_of(spec, "0")
    started = up.up(run.experiment, allocate(run.experiment, spec.pins), folder=tmp_path)
    (tmp_path / "go").touch()
    (outcome,) = swept(spec)
    assert (outcome.state, started and started.is_live) == ("succeeded", False)
    assert (tmp_path / "ran").read_text() == "0\n"


def test_a_trial_that_was_lost_with_its_machine_runs_again(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, "echo $X >> ran; until test -e go; do sleep 0.05; done")
    (planned,) = runs_of(spec, "0")
    run = up.up(planned.experiment, allocate(planned.experiment, spec.pins), folder=tmp_path)
    assert run is not None
    until((tmp_path / "ran").exists)
    state = (run.folder / "state.json").read_bytes()
    (tmp_path / "go").touch()
    up.wait(run)
    # Change the files to those of a machine whose power failed during the run.
    identity = json.loads((run.folder / "identity.json").read_text())
    identity["machine"]["boot_id"] = "before"
    (run.folder / "identity.json").write_text(json.dumps(identity))
    (run.folder / "state.json").write_bytes(state)
    until(lambda: look_here(planned.trial).state == "lost")
    (outcome,) = swept(spec)
    assert (outcome.state, outcome.is_kept) == ("succeeded", False)
    assert (tmp_path / "ran").read_text() == "0\n0\n"


def test_a_trial_that_takes_too_long_is_ended_and_has_failed(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, "sleep 100")
    (outcome,) = swept(spec, timeout_s=0.5)
    assert (outcome.state, outcome.status) == ("failed", TIMED_OUT)
    assert outcome.error == "stopped after its timeout of 0.5 s"
    assert live_runs() == []
    assert look_here(outcome.trial).error == outcome.error


def test_what_a_trial_measured_is_that_of_its_last_run_and_goes_with_it(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, 'echo "{\\"loss\\": $X}" >> "$SYMPH_METRICS"')
    swept(spec)
    swept(spec, again=True)
    assert metrics_of("e-x0") == ['{"loss": 0}']
    LocalWatcher().delete("e-x0")
    assert metrics_of("e-x0") is None
    assert not [path for path in state_dir().rglob("*") if "metrics" in path.name]


def test_a_hopeless_trial_is_ended_is_no_failure_and_is_kept(tmp_path: Path) -> None:
    # The others are equal: none is worse than their median, even if the machine delays one.
    line = 'for i in 1 2 3 4; do echo "step=$i loss=$((X / 9))"; sleep 0.3; done; test $X != 9 || sleep 100'
    spec = spec_of(tmp_path, line)
    judge = TrialComparison(metric="loss", goal="min", rule="median", grace=2)
    runs = runs_of(spec, "1,2,3,9")
    outcomes = list(run_trials(runs, spec, parallel=4, stopper=Stopper(judge=judge, read=series_here)))
    hopeless = next(one for one in outcomes if one.trial.name == "e-x9")
    assert (hopeless.state, hopeless.status, hopeless.is_done) == ("stopped", None, True)
    assert hopeless.error.startswith("stopped early: loss 1 by step")
    assert [one.state for one in outcomes if one is not hopeless] == ["succeeded"] * 3
    assert all(one.is_kept for one in run_trials(runs, spec, parallel=4))


def test_a_record_forgets_the_trials_of_which_nothing_is_left() -> None:
    first = Sweep(name="e", backend="tmux", trials={"e-x0": {"x": "0"}, "e-x1": {"x": "1"}})
    remember(first, is_left=lambda _: True)
    remember(Sweep(name="e", backend="tmux", trials={"e-x2": {"x": "2"}}), is_left=lambda name: name == "e-x1")
    assert list(find_sweep("e", "tmux").trials) == ["e-x1", "e-x2"]


def test_a_record_says_why_a_release_was_removed_until_its_trial_begins_anew() -> None:
    sweep = Sweep(name="e", backend="kube", trials={"e-x0": {"x": "0"}}, namespace="n")
    remember(sweep, is_left=lambda _: True)
    remember_end("e", "kube", "e-x0", "the run", "loss 9")
    remember(sweep, is_left=lambda _: True)
    assert find_sweep("e", "kube").stopped == {"e-x0": ("the run", "loss 9")}
    remember_end("e", "kube", "e-x0", "the run", "")
    assert find_sweep("e", "kube").stopped == {}


class _InterruptedExecutor(ThreadPoolExecutor):
    """An interrupt that arrives after a trial was submitted and before the sweep has recorded its future."""

    def submit(self, *words: Any, **named: Any) -> Any:
        super().submit(*words, **named)
        raise KeyboardInterrupt


def test_an_interrupt_right_after_a_trial_was_started_ends_that_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = builder.from_data({"name": "x", "image": "i", "processes": {"p": {"command": ["run"]}}})
    stop = threading.Event()

    def work(run: TrialRun) -> Outcome:
        assert stop.wait(20), "the trial was never told to end"
        return Outcome(trial=run.trial, state="stopped")

    monkeypatch.setattr(local, "ThreadPoolExecutor", _InterruptedExecutor)
    runs = [TrialRun(trial=Trial(name="t", settings={}), experiment=experiment)]
    with pytest.raises(KeyboardInterrupt):
        list(in_parallel(runs, work, parallel=2, on_stop=lambda _names: stop.set()))
    assert stop.is_set()


class _SlowExecutor(ThreadPoolExecutor):
    """Start one trial at a time, so that another one still waits when the sweep is interrupted."""

    def __init__(self, _parallel: int) -> None:
        super().__init__(1)


def test_an_interrupt_ends_a_sweep_in_which_a_trial_was_not_started_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = builder.from_data({"name": "x", "image": "i", "processes": {"p": {"command": ["run"]}}})
    runs = [TrialRun(trial=Trial(name=name, settings={}), experiment=experiment) for name in ("a", "b")]
    stop, done, begun = threading.Event(), threading.Event(), []

    def work(run: TrialRun) -> Outcome:
        begun.append(run.trial.name)
        stop.wait(20)
        return Outcome(trial=run.trial, state="stopped")

    def interrupted() -> None:
        with contextlib.suppress(KeyboardInterrupt):
            list(in_parallel(runs, work, parallel=2, on_stop=lambda _names: stop.set()))
        done.set()

    def interrupt(*_words: Any, **_named: Any) -> Any:
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(local, "ThreadPoolExecutor", _SlowExecutor)
    monkeypatch.setattr(local, "wait", interrupt)
    threading.Thread(target=interrupted, daemon=True).start()
    assert done.wait(30), "the sweep never ended"
    assert begun == ["a"]
