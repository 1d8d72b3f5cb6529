"""Run the trials of a sweep on this machine, or write their values and charts to files."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from threading import Event
from typing import Any

from symphony_charts.backend.protocol import Watcher
from symphony_charts.backend.status import LogQuery, Phase
from symphony_charts.chart.files import Chart
from symphony_charts.errors import NotFound, SymphError, ToolFailed
from symphony_charts.formats.yaml_write import dump
from symphony_charts.local import up
from symphony_charts.local.backend import LocalWatcher
from symphony_charts.local.history import is_run_of
from symphony_charts.local.run_files import read_json, write_json
from symphony_charts.local.runs import LIVE, Run, is_same_folder, live_runs, runs_of
from symphony_charts.local.status import RUN_PHASES
from symphony_charts.local.up import exit_status
from symphony_charts.spec.files import SpecFile
from symphony_charts.spec.pods import allocate
from symphony_charts.sweep.metrics import Series, Stopper, series_of
from symphony_charts.sweep.trial_runs import METRICS, TIMED_OUT, Outcome, TrialRun, too_long
from symphony_charts.sweep.trials import Trial
from symphony_charts.system.files import write_file


def metrics_of(name: str) -> list[str] | None:
    """Return the lines in the metrics file of a trial's last run; None if it has written none."""
    runs = runs_of(name)
    file = runs[-1].folder / METRICS if runs else None
    return file.read_text(encoding="utf-8", errors="replace").splitlines() if file and file.is_file() else None


def series_here(name: str, pattern: re.Pattern[str] | None = None) -> Series:
    """Return the metrics of a trial's last run: from its file if it wrote one, else from its output."""
    written = metrics_of(name)
    return series_logged(LocalWatcher(), name, pattern) if written is None else series_of(written)


def series_logged(watcher: Watcher, name: str, pattern: re.Pattern[str] | None = None) -> Series:
    """Return the metrics in the output of a trial."""
    try:
        return series_of((line.text for line in watcher.logs(name, LogQuery())), pattern)
    except NotFound:
        return {}


def write_trials(runs: Sequence[TrialRun], folder: Path, charts: Mapping[str, Chart]) -> int:
    """Write `<trial>.yaml` with the values of each trial and `<trial>.tgz` with its own chart; remove stale ones.

    `charts` are those charts by trial. Returns the number of files that changed.
    """
    touched = 0
    kept = {run.trial.name for run in runs}
    for values in sorted(folder.glob("*.yaml")) if folder.is_dir() else ():
        if not values.read_bytes().startswith(_HEADER.encode()):
            continue
        is_gone = values.stem not in kept
        stale = [values] if is_gone else []
        stale += [values.with_suffix(".tgz")] if is_gone or values.stem not in charts else []
        for file in filter(Path.exists, stale):
            file.unlink()
            touched += 1
    for name, chart in charts.items():
        touched += write_file(folder / f"{name}.tgz", chart.archive)
    for run in runs:
        settings = " ".join(f"{key}={value}" for key, value in run.trial.settings.items()).encode("unicode_escape")
        text = f"{_HEADER}# {settings.decode()}\n{dump(run.values)}"
        touched += write_file(folder / f"{run.trial.name}.yaml", text.encode())
    return touched


_HEADER = "# One trial of a sweep, written by symph.\n"


def run_trials(
    runs: Iterable[TrialRun],
    spec: SpecFile,
    *,
    parallel: int,
    again: bool = False,
    timeout_s: float | None = None,
    on_start: Callable[[Trial], None] = lambda _: None,
    stopper: Stopper | None = None,
) -> Generator[Outcome]:
    """Run the trials in tmux, `parallel` at a time, and yield each outcome when it is known.

    Trials that are done unchanged are kept, unless `again`, and running ones are joined. A trial is ended when it runs
    longer than `timeout_s`, or if `stopper` finds it hopeless. When the caller stops, or on Ctrl-C, running trials are
    ended and no other starts. Unless `runs` is a sequence, each is requested when there is a place for it, after
    earlier outcomes.
    """
    folder = spec.path.absolute().parent
    left: list[TrialRun] = []
    for run in runs if isinstance(runs, Sequence) else ():
        kept = None if again else done_here(run, folder)
        if kept is None:
            left.append(run)
            continue
        if stopper is not None:
            stopper.look_at(run.trial.name)
        yield kept
    # Running trials already have their places; others start as they end.
    left.sort(key=lambda run: not any(each.is_active for each in live_runs(run.trial.name)))
    yield from in_parallel(
        left if isinstance(runs, Sequence) else runs,
        lambda run: _run_one(run, spec, folder, again=again, timeout_s=timeout_s, stopper=stopper),
        parallel=parallel,
        on_start=on_start,
        on_stop=lambda names: _end(names | {run.trial.name for run in left}),
    )


def done_here(run: TrialRun, folder: Path) -> Outcome | None:
    """Return the outcome of a trial that was done here with the current experiment; None if it must run."""
    ended = runs_of(run.trial.name)
    outcome = outcome_here(run.trial, ended[-1]) if ended else None
    if outcome is None or not outcome.is_done or not is_run_of(ended[-1], run.experiment, folder):
        return None
    return replace(outcome, is_kept=True)


def look_here(trial: Trial) -> Outcome:
    runs = runs_of(trial.name)
    return outcome_here(trial, runs[-1]) if runs else Outcome(trial=trial, state="pending")


def outcome_here(trial: Trial, run: Run) -> Outcome:
    """Return the outcome of the trial of this run, from its files."""
    try:
        state = run.state()
    except NotFound:
        return Outcome(trial=trial, state="pending")
    except ToolFailed as error:
        return Outcome(trial=trial, state="damaged", error=error.what)
    seconds = max(0.0, (state.ended or time.time()) - state.started)
    phase: Phase = RUN_PHASES.get(state.phase, "running")
    if state.phase in LIVE:
        where = run.location
        is_lost = where.verdict == "lost"
        return Outcome(trial=trial, state="lost" if is_lost else phase, seconds=seconds, error=where.words)
    verdict: dict[str, Any] = {}
    with suppress(NotFound, ToolFailed):
        verdict = read_json(run.folder / _VERDICT)
    status = verdict.get("status", exit_status(run) if phase in ("succeeded", "failed") else None)
    return Outcome(
        trial=trial,
        state="failed" if status else phase,
        status=status,
        seconds=seconds,
        error=str(verdict.get("reason") or state.cause),
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
    """Do `work` for each trial, `parallel` at a time, taking each when there is a place for it.

    If the caller stops while trials are running, `on_stop` gets the names of all started ones.
    """
    left, begun, working = iter(runs), set[str](), set[str]()
    going: set[Future[Outcome]] = set()
    stopping = Event()

    def tracked(run: TrialRun) -> Outcome:
        working.add(run.trial.name)
        try:
            # Checked after adding the name: either the cleanup below sees the name, or this sees the cleanup.
            if stopping.is_set():
                raise CancelledError
            return work(run)
        finally:
            working.discard(run.trial.name)

    with ThreadPoolExecutor(parallel) as pool:
        try:
            while True:
                for run in islice(left, parallel - len(going)):
                    begun.add(run.trial.name)
                    on_start(run.trial)
                    going.add(pool.submit(tracked, run))
                if not going:
                    return
                done, going = wait(going, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        finally:
            stopping.set()
            # A trial that is just starting can only be stopped a moment later, so ask again until all have ended. An
            # interrupt may come between `submit` and `going.add`: such a trial is only in `working`.
            while going or working:
                on_stop(begun)
                going = wait(going, timeout=_ENDING_S).not_done
                if working and not going:
                    time.sleep(_ENDING_S)


def _run_one(
    run: TrialRun, spec: SpecFile, folder: Path, *, again: bool, timeout_s: float | None, stopper: Stopper | None = None
) -> Outcome:
    began = time.monotonic()
    try:
        # Before `done_here`: a run that ends in between is then done, and does not run twice.
        going = [each for each in live_runs(run.trial.name) if each.is_active]
        # Another sweep may have done it since.
        kept = None if again else done_here(run, folder)
        if kept is not None:
            return kept
        # A run of other settings or code does not belong to this sweep, and occupies the name.
        is_other = bool(going) and not is_run_of(going[-1], run.experiment, folder)
        if going and not again and not is_other:
            _wait(going[-1], timeout_s, stopper)
            return outcome_here(run.trial, going[-1])
        services = allocate(run.experiment, spec.pins)
        # A run from another checkout is not this sweep's to end: `up` refuses it.
        is_ours = not going or is_same_folder(going[-1].places[0] or folder, folder)
        started = up.up(run.experiment, services, folder=folder, force=(again or is_other) and is_ours)
        if started is not None:
            _wait(started, timeout_s, stopper)
            return outcome_here(run.trial, started)
    except SymphError as error:
        seconds = time.monotonic() - began
        return Outcome(trial=run.trial, state="failed", status=error.exit_code, seconds=seconds, error=error.what)
    return look_here(run.trial)


def _wait(run: Run, timeout_s: float | None, stopper: Stopper | None) -> None:
    """Wait until `run` is over; end it after `timeout_s` or when it is hopeless."""
    until = None if timeout_s is None else run.state().started + timeout_s

    def next_look() -> float | None:
        spans = [] if until is None else [max(0.0, until - time.time())]
        return min([*spans, *([_LOOK_S] if stopper is not None else [])], default=None)

    while not up.is_over_within(run, next_look()):
        why = stopper.look_at(run.experiment) if stopper is not None else ""
        if until is not None and time.time() >= until and timeout_s is not None:
            _stop(run, {"status": TIMED_OUT, "reason": too_long(timeout_s)})
        elif why:
            _stop(run, {"reason": f"stopped early: {why}", "is_early": True})
    if run.is_live:
        # Nothing of a trial goes on after its end.
        up.down(run)
    if stopper is not None:
        stopper.look_at(run.experiment)


def _stop(run: Run, verdict: Mapping[str, object]) -> None:
    write_json(run.folder / _VERDICT, verdict, is_safe=True)
    up.down(run)


# Time for trials to end before searching for those that started in the meantime.
_ENDING_S = 1.0
# Interval for reading metrics if trials may be stopped early.
_LOOK_S = 1.0
_VERDICT = "trial.json"


def _end(names: set[str]) -> None:
    for run in live_runs():
        if run.experiment in names:
            up.down(run)
