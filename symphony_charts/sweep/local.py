"""A sweep runs on this machine, or is written as one chart with the values of each trial."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path

from symphony_charts.chart.render.values import Values
from symphony_charts.chart.values.merge import overrides_between
from symphony_charts.errors import Problem, SpecError
from symphony_charts.formats.yaml_text import dump
from symphony_charts.local import up
from symphony_charts.local.runs import live_runs
from symphony_charts.prepare import Prepared, prepare_experiment
from symphony_charts.spec.files import SpecFile
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.services import allocate
from symphony_charts.sweep.trials import Trial, apply
from symphony_charts.system.files import write_file

__all__ = ["Outcome", "TrialRun", "in_parallel", "prepare_trials", "run_trials", "write_trials"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRun:
    """A trial as an experiment, and as what is set in the values of the sweep's chart."""

    trial: Trial
    experiment: Experiment
    values: Values = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a trial ended: its exit status, how long it took, and why it could not start or failed."""

    trial: Trial
    status: int
    seconds: float
    error: str = ""


def prepare_trials(spec: SpecFile, trials: Sequence[Trial], base: Prepared | None) -> list[TrialRun]:
    """The trials as experiments, with the values that make the chart of `base` each of them; None: run here.

    Raises SpecError, the faults of all trials at once, for settings that name nothing, that the spec refuses, or that
    values cannot express, and PlacementError for a trial that cannot be scheduled where `base` can.
    """
    problems: dict[tuple[str, str], Problem] = {}
    runs = []
    for trial in trials:
        try:
            experiment = apply(base.experiment if base is not None else spec.experiment, trial)
            values = _values_over(base, experiment, spec) if base is not None else {}
            runs.append(TrialRun(trial=trial, experiment=experiment, values=values))
        except SpecError as error:
            # Most faults are those of the setting, the same in every trial that has it.
            problems |= {(problem.what, problem.path): problem for problem in error.problems}
    if problems:
        raise SpecError(list(problems.values()), at=str(spec.path))
    return runs


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
    on_start: Callable[[Trial], None] = lambda _: None,
) -> Iterator[Outcome]:
    """Run the trials in tmux, `parallel` at a time, each outcome as it comes.

    When the caller stops, or on Ctrl-C, trials that run are ended and no other is begun.
    """
    return in_parallel(runs, lambda run: _run_one(run, spec), parallel=parallel, on_start=on_start, on_stop=_end)


def in_parallel(
    runs: Sequence[TrialRun],
    work: Callable[[TrialRun], Outcome],
    *,
    parallel: int,
    on_start: Callable[[Trial], None] = lambda _: None,
    on_stop: Callable[[set[str]], None] = lambda _: None,
) -> Iterator[Outcome]:
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
            if going:
                on_stop({run.trial.name for run in runs})


def _run_one(run: TrialRun, spec: SpecFile) -> Outcome:
    began = time.monotonic()
    services = allocate(run.experiment, spec.pins)
    started = up.up(run.experiment, services, folder=spec.path.parent)
    status = up.wait(started) if started is not None else 0
    return Outcome(trial=run.trial, status=status, seconds=time.monotonic() - began)


def _end(names: set[str]) -> None:
    for run in live_runs():
        if run.experiment in names:
            up.down(run)
