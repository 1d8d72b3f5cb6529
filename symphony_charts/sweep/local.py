"""A sweep runs on this machine, or is written as one chart with the values of each trial."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from symphony_charts.backend.status import Phase
from symphony_charts.chart.render.values import Values
from symphony_charts.chart.values.merge import overrides_between
from symphony_charts.errors import NotFound, Problem, SpecError, SymphError, ToolFailed
from symphony_charts.formats.yaml_text import dump
from symphony_charts.local import up
from symphony_charts.local.history import is_of
from symphony_charts.local.runs import LIVE, Run, live_runs, read_json, runs_of, write_json
from symphony_charts.local.status import RUN_PHASES
from symphony_charts.local.up import exit_status
from symphony_charts.prepare import Prepared, prepare_experiment
from symphony_charts.spec.files import SpecFile
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.services import allocate
from symphony_charts.sweep.outcomes import TIMED_OUT, Outcome, too_long
from symphony_charts.sweep.trials import Trial, apply
from symphony_charts.system.files import write_file
from symphony_charts.system.user_folders import state_dir

__all__ = [
    "TrialRun",
    "done_here",
    "in_parallel",
    "look_here",
    "metrics_file",
    "prepare_trials",
    "run_trials",
    "write_trials",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRun:
    """A trial as an experiment, and as what is set in the values of the sweep's chart."""

    trial: Trial
    experiment: Experiment
    values: Values = field(default_factory=dict)


def prepare_trials(spec: SpecFile, trials: Sequence[Trial], base: Prepared | None) -> list[TrialRun]:
    """The trials as experiments, with the values that make the chart of `base` each of them; None: run here.

    Raises SpecError, the faults of all trials at once, for settings that name nothing, that the spec refuses, or that
    values cannot express, and PlacementError for a trial that cannot be scheduled where `base` can.
    """
    problems: dict[tuple[str, str], Problem] = {}
    runs = []
    for trial in trials:
        try:
            if base is None:
                experiment = apply(spec.experiment, trial, str(metrics_file(trial.name)))
            else:
                # What a pod keeps of a trial are its logs.
                experiment = apply(base.experiment, trial, "/dev/stdout")
            values = _values_over(base, experiment, spec) if base is not None else {}
            runs.append(TrialRun(trial=trial, experiment=experiment, values=values))
        except SpecError as error:
            # Most faults are those of the setting, the same in every trial that has it.
            problems |= {(problem.what, problem.path): problem for problem in error.problems}
    if problems:
        raise SpecError(list(problems.values()), at=str(spec.path))
    return runs


def metrics_file(name: str) -> Path:
    """Where a trial on this machine writes what it measures, a JSON object a line."""
    return state_dir() / "sweeps" / "metrics" / f"{name}.jsonl"


def _values_over(base: Prepared, experiment: Experiment, spec: SpecFile) -> Values:
    """What makes the chart of `base` that of `experiment`; its own overrides stay, but for what the trial sets."""
    values = overrides_between(base.defaults, prepare_experiment(experiment, spec.pins).defaults)
    trial = base.under(values)
    if base.plan is None or base.plan.fits:
        trial.refuse_unschedulable()
    return values


def write_trials(runs: Sequence[TrialRun], folder: Path) -> int:
    """Writes ``<trial>.yaml`` with the values of each trial, and removes those of trials that are no more.

    The number of files touched: 0 on a second run.
    """
    touched = 0
    kept = {f"{run.trial.name}.yaml" for run in runs}
    for stale in sorted(folder.glob("*.yaml")) if folder.is_dir() else ():
        if stale.name not in kept and stale.read_text(encoding="utf-8").startswith(_HEADER):
            stale.unlink()
            touched += 1
    for run in runs:
        settings = " ".join(f"{key}={value}" for key, value in run.trial.settings.items()).encode("unicode_escape")
        text = f"{_HEADER}# {settings.decode()}\n{dump(run.values)}"
        touched += write_file(folder / f"{run.trial.name}.yaml", text.encode())
    return touched


_HEADER = "# One trial of a sweep, written by symph.\n"


def run_trials(
    runs: Sequence[TrialRun],
    spec: SpecFile,
    *,
    parallel: int,
    again: bool = False,
    timeout_s: float | None = None,
    on_start: Callable[[Trial], None] = lambda _: None,
) -> Generator[Outcome]:
    """Run the trials in tmux, `parallel` at a time, each outcome as it comes.

    Those that are done as they are now are kept, unless all is to run `again`, and those that still run are joined.
    One that takes longer than `timeout_s` since its start is ended. When the caller stops, or on Ctrl-C, trials that
    run are ended and no other is begun.
    """
    folder = spec.path.absolute().parent
    left = []
    for run in runs:
        kept = None if again else done_here(run, folder)
        if kept is not None:
            yield kept
        else:
            left.append(run)
    # Those that run already have their places; others begin as they end.
    left.sort(key=lambda run: not any(each.is_active for each in live_runs(run.trial.name)))
    yield from in_parallel(
        left,
        lambda run: _run_one(run, spec, folder, again=again, timeout_s=timeout_s),
        parallel=parallel,
        on_start=on_start,
        on_stop=_end,
    )


def done_here(run: TrialRun, folder: Path) -> Outcome | None:
    """The outcome of a trial that was done here before, with the experiment as it is now; None: it is to run."""
    ended = runs_of(run.trial.name)
    outcome = outcome_here(run.trial, ended[-1]) if ended else None
    if outcome is None or not outcome.is_done or not is_of(ended[-1], run.experiment, folder):
        return None
    return replace(outcome, is_kept=True)


def look_here(trial: Trial) -> Outcome:
    """How a trial is on this machine."""
    runs = runs_of(trial.name)
    return outcome_here(trial, runs[-1]) if runs else Outcome(trial=trial, state="pending")


def outcome_here(trial: Trial, run: Run) -> Outcome:
    """How the trial is whose run this is, as its files say."""
    try:
        state = run.state()
    except NotFound:
        return Outcome(trial=trial, state="pending")
    except ToolFailed as error:
        return Outcome(trial=trial, state="damaged", error=error.what)
    began, ended = float(state["started"]), state.get("ended")
    seconds = max(0.0, float(ended or time.time()) - began)
    phase: Phase = RUN_PHASES.get(state["phase"], "running")
    if state["phase"] in LIVE:
        where = run.whereabouts
        is_lost = where.verdict == "lost"
        return Outcome(trial=trial, state="lost" if is_lost else phase, seconds=seconds, error=where.words)
    verdict = _verdict_of(run)
    status = verdict.get("status", exit_status(run) if phase in ("succeeded", "failed") else None)
    return Outcome(
        trial=trial,
        state="failed" if status else phase,
        status=status,
        seconds=seconds,
        error=str(verdict.get("reason") or state.get("cause") or ""),
        is_early=bool(verdict.get("is_early")),
    )


def in_parallel(
    runs: Sequence[TrialRun],
    work: Callable[[TrialRun], Outcome],
    *,
    parallel: int,
    on_start: Callable[[Trial], None] = lambda _: None,
    on_stop: Callable[[set[str]], None] = lambda _: None,
) -> Generator[Outcome]:
    """Do `work` for each trial, `parallel` at a time; `on_stop` gets the names of those that an end finds going on."""
    left = list(reversed(runs))
    going: set[Future[Outcome]] = set()
    with ThreadPoolExecutor(parallel) as pool:
        try:
            while left or going:
                while left and len(going) < parallel:
                    run = left.pop()
                    on_start(run.trial)
                    going.add(pool.submit(work, run))
                done, going = wait(going, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        finally:
            # A trial that is just being started is there to be ended a moment later.
            while going:
                on_stop({run.trial.name for run in runs})
                going = wait(going, timeout=_ENDING_S).not_done


def _run_one(run: TrialRun, spec: SpecFile, folder: Path, *, again: bool, timeout_s: float | None) -> Outcome:
    """Run a trial, or join it where it runs; what stands in its way is its outcome."""
    began = time.monotonic()
    try:
        # Another sweep may have done it since.
        kept = None if again else done_here(run, folder)
        if kept is not None:
            return kept
        going = [each for each in live_runs(run.trial.name) if each.is_active]
        # A run of other settings or code is no part of this sweep, and takes the name.
        is_other = bool(going) and not is_of(going[-1], run.experiment, folder)
        services = allocate(run.experiment, spec.pins)
        if again or is_other or not going:
            file = metrics_file(run.trial.name)
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            file.unlink(missing_ok=True)
        started = up.up(run.experiment, services, folder=folder, force=again or is_other)
        if started is not None:
            _wait(started, timeout_s)
            return outcome_here(run.trial, started)
    except SymphError as error:
        seconds = time.monotonic() - began
        return Outcome(trial=run.trial, state="failed", status=error.exit_code, seconds=seconds, error=error.what)
    return look_here(run.trial)


def _wait(run: Run, timeout_s: float | None) -> None:
    """Return when `run` is over, which it is made to be once it has run for `timeout_s`."""
    until = None if timeout_s is None else float(run.state()["started"]) + timeout_s
    while not up.is_over_within(run, None if until is None else max(0.0, until - time.time())):
        if until is not None and time.time() >= until and timeout_s is not None:
            _stop(run, {"status": TIMED_OUT, "reason": too_long(timeout_s)})


def _stop(run: Run, verdict: Mapping[str, object]) -> None:
    """End a run for a reason, which stands in its folder from before the end on."""
    write_json(run.folder / _VERDICT, verdict, is_safe=True)
    up.down(run)


def _verdict_of(run: Run) -> dict[str, Any]:
    """Why a sweep has ended a run; empty where none has."""
    try:
        return read_json(run.folder / _VERDICT)
    except (NotFound, ToolFailed):
        return {}


# How long trials are given to end before those are looked for that began meanwhile.
_ENDING_S = 1.0
_VERDICT = "trial.json"


def _end(names: set[str]) -> None:
    for run in live_runs():
        if run.experiment in names:
            up.down(run)
