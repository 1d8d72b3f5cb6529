"""A sweep runs on this machine, or is written as one chart with the values of each trial."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from symphony_charts.backend.status import LogQuery, Phase
from symphony_charts.chart.render.values import Values, texts
from symphony_charts.chart.values.merge import overrides_between
from symphony_charts.errors import NotFound, Problem, SpecError, SymphError, ToolFailed
from symphony_charts.formats.data import sub
from symphony_charts.formats.yaml_text import dump
from symphony_charts.local import up
from symphony_charts.local.backend import LocalWatcher
from symphony_charts.local.history import home, is_of
from symphony_charts.local.runs import LIVE, Run, live_runs, read_json, runs_of, write_json
from symphony_charts.local.status import RUN_PHASES
from symphony_charts.local.up import exit_status
from symphony_charts.prepare import Prepared, prepare_experiment
from symphony_charts.spec.files import SpecFile
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import pods_of
from symphony_charts.spec.services import allocate
from symphony_charts.spec.variable_names import RUN
from symphony_charts.sweep.early_stop import Stopper
from symphony_charts.sweep.metrics import Series, series_of
from symphony_charts.sweep.outcomes import TIMED_OUT, Outcome, too_long
from symphony_charts.sweep.trials import Trial, apply
from symphony_charts.system.files import write_file

__all__ = [
    "TrialRun",
    "done_here",
    "in_parallel",
    "look_here",
    "metrics_of",
    "prepare_trials",
    "run_asked",
    "run_trials",
    "series_here",
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
    if base is not None and len(trials) > 1:
        _refuse_names(base, spec)
    problems: dict[tuple[str, str], Problem] = {}
    runs = []
    for trial in trials:
        try:
            if base is None:
                experiment = apply(spec.experiment, trial, _metrics_place(trial.name))
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


def _refuse_names(base: Prepared, spec: SpecFile) -> None:
    """Raise SpecError where pods have names of their own, which but one release of a namespace can have."""
    groups = sub(base.values, "groups")
    problems = [
        Problem(
            what=f"trials on a cluster would all be called {', '.join(texts(sub(groups, group).get('names')))}",
            path=f"{pod.path}.names",
            next=f"dial $SYMPH_<SERVICE>_ADDR, then --set groups.{group}.names=null; or run them here, with --up",
        )
        for group, pod in pods_of(base.experiment).items()
        if sub(groups, group).get("names")
    ]
    if problems:
        raise SpecError(problems, at=str(spec.path))


def _metrics_place(name: str) -> str:
    """What a trial on this machine finds in SYMPH_METRICS: a file in the folder of its run, with which it goes."""
    folder = str(home() / name).replace("$(", "$$(")
    return f"{folder}/$({RUN})/{_METRICS}"


def metrics_of(name: str) -> list[str] | None:
    """The lines that the last run of a trial wrote to its file of metrics; None where it has written none."""
    file = runs_of(name)[-1].folder / _METRICS if runs_of(name) else None
    return file.read_text(encoding="utf-8", errors="replace").splitlines() if file and file.is_file() else None


def series_here(name: str, pattern: re.Pattern[str] | None = None) -> Series:
    """What the last run of a trial measured: by its file where it has written one, else by what it printed."""
    written = metrics_of(name)
    if written is not None:
        return series_of(written)
    try:
        return series_of((line.text for line in LocalWatcher().logs(name, LogQuery())), pattern)
    except NotFound:
        return {}


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
    stopper: Stopper | None = None,
) -> Generator[Outcome]:
    """Run the trials in tmux, `parallel` at a time, each outcome as it comes.

    Those that are done as they are now are kept, unless all is to run `again`, and those that still run are joined.
    One that takes longer than `timeout_s` since its start is ended, and one that `stopper` finds hopeless. When the
    caller stops, or on Ctrl-C, trials that run are ended and no other is begun.
    """
    folder = spec.path.absolute().parent
    left = []
    for run in runs:
        kept = None if again else done_here(run, folder)
        if kept is None:
            left.append(run)
            continue
        if stopper is not None:
            stopper.look_at(run.trial.name)
        yield kept
    # Those that run already have their places; others begin as they end.
    left.sort(key=lambda run: not any(each.is_active for each in live_runs(run.trial.name)))
    yield from in_parallel(
        left,
        lambda run: _run_one(run, spec, folder, again=again, timeout_s=timeout_s, stopper=stopper),
        parallel=parallel,
        on_start=on_start,
        on_stop=lambda names: _end(names | {run.trial.name for run in left}),
    )


def run_asked(
    asked: Iterable[TrialRun],
    spec: SpecFile,
    *,
    parallel: int,
    again: bool = False,
    timeout_s: float | None = None,
    on_start: Callable[[Trial], None] = lambda _: None,
    stopper: Stopper | None = None,
) -> Generator[Outcome]:
    """Run trials as `run_trials` does, each asked for once there is a place for it, after what came before it."""
    folder = spec.path.absolute().parent
    yield from in_parallel(
        asked,
        lambda run: _run_one(run, spec, folder, again=again, timeout_s=timeout_s, stopper=stopper),
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
    runs: Iterable[TrialRun],
    work: Callable[[TrialRun], Outcome],
    *,
    parallel: int,
    on_start: Callable[[Trial], None] = lambda _: None,
    on_stop: Callable[[set[str]], None] = lambda _: None,
) -> Generator[Outcome]:
    """Do `work` for each trial, `parallel` at a time, each taken once there is a place for it.

    `on_stop` gets the names of those begun where an end finds some going on.
    """
    left, begun = iter(runs), set[str]()
    going: set[Future[Outcome]] = set()
    with ThreadPoolExecutor(parallel) as pool:
        try:
            while True:
                for run in islice(left, parallel - len(going)):
                    begun.add(run.trial.name)
                    on_start(run.trial)
                    going.add(pool.submit(work, run))
                if not going:
                    return
                done, going = wait(going, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        finally:
            # A trial that is just being started is there to be ended a moment later.
            while going:
                on_stop(begun)
                going = wait(going, timeout=_ENDING_S).not_done


def _run_one(
    run: TrialRun, spec: SpecFile, folder: Path, *, again: bool, timeout_s: float | None, stopper: Stopper | None = None
) -> Outcome:
    """Run a trial, or join it where it runs; what stands in its way is its outcome."""
    began = time.monotonic()
    try:
        # Looked for before what is done: one that ends meanwhile is done then, and does not run twice.
        going = [each for each in live_runs(run.trial.name) if each.is_active]
        # Another sweep may have done it since.
        kept = None if again else done_here(run, folder)
        if kept is not None:
            return kept
        # A run of other settings or code is no part of this sweep, and takes the name.
        is_other = bool(going) and not is_of(going[-1], run.experiment, folder)
        if going and not again and not is_other:
            _wait(going[-1], timeout_s, stopper)
            # Somebody was killed who was starting it: nothing of it ran.
            if not up.was_cut(going[-1]):
                return outcome_here(run.trial, going[-1])
        services = allocate(run.experiment, spec.pins)
        started = up.up(run.experiment, services, folder=folder, force=again or is_other)
        if started is not None:
            _wait(started, timeout_s, stopper)
            return outcome_here(run.trial, started)
    except SymphError as error:
        seconds = time.monotonic() - began
        return Outcome(trial=run.trial, state="failed", status=error.exit_code, seconds=seconds, error=error.what)
    return look_here(run.trial)


def _wait(run: Run, timeout_s: float | None, stopper: Stopper | None) -> None:
    """Return when `run` is over, which it is made to be once it has run for `timeout_s` or is hopeless."""
    until = None if timeout_s is None else float(run.state()["started"]) + timeout_s
    while not up.is_over_within(run, _next_look(until, stopper)):
        why = stopper.look_at(run.experiment) if stopper is not None else ""
        if until is not None and time.time() >= until and timeout_s is not None:
            _stop(run, {"status": TIMED_OUT, "reason": too_long(timeout_s)})
        elif why:
            _stop(run, {"reason": f"stopped early: {why}", "is_early": True})
    if stopper is not None:
        stopper.look_at(run.experiment)


def _next_look(until: float | None, stopper: Stopper | None) -> float | None:
    """In how many seconds a trial is to be looked at again; None: when it is over."""
    spans = [] if until is None else [max(0.0, until - time.time())]
    return min([*spans, *([_LOOK_S] if stopper is not None else [])], default=None)


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
# How often what trials measure is read, where some may be stopped early.
_LOOK_S = 1.0
_VERDICT, _METRICS = "trial.json", "metrics.jsonl"


def _end(names: set[str]) -> None:
    for run in live_runs():
        if run.experiment in names:
            up.down(run)
