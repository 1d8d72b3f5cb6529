"""Trials as runs: their specs or values, records and outcomes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from symphony_charts.backend.status import Phase
from symphony_charts.chart.build.chart import BuiltChart
from symphony_charts.chart.release import merge, overrides_between
from symphony_charts.errors import NotFound, Problem, SpecError, ToolFailed
from symphony_charts.formats.data import Values, sub
from symphony_charts.local.run_files import read_json, write_json
from symphony_charts.local.runs import home
from symphony_charts.prepare import Prepared, prepare_experiment
from symphony_charts.spec.files import SpecFile
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import pods_of
from symphony_charts.spec.variable_names import EXPERIMENT, RUN
from symphony_charts.sweep.trials import Trial, apply
from symphony_charts.system.file_locks import experiment_lock
from symphony_charts.system.user_folders import state_dir

METRICS = "metrics.jsonl"
"""The file in the folder of a run here to which a trial may write its metrics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRun:
    """A trial as an experiment, and on a cluster as `values` over the chart of the sweep.

    `own` is the chart of a trial that values cannot express; then `values` are over that chart.
    """

    trial: Trial
    experiment: Experiment
    values: Values = field(default_factory=dict)
    own: Prepared | None = None


def prepare_trials(
    spec: SpecFile, trials: Sequence[Trial], base: Prepared | None, overrides: Values | None = None
) -> list[TrialRun]:
    """Return the trials as experiments; with `base`, the chart of the sweep, also as values or charts of their own.

    `overrides` are those of `base`.

    Raises:
        SpecError: Settings name nothing, or the spec refuses them. It has the problems of all trials.
        PlacementError: A trial cannot be scheduled where `base` can.
    """
    if base is not None and len(trials) > 1:
        _refuse_names(base, spec)
    problems: dict[tuple[str, str], Problem] = {}
    runs = []
    makers = base and _makers(base.built)
    for trial in trials:
        try:
            if base is None:
                experiment = apply(spec.experiment, trial, _metrics_place(trial.name))
                runs.append(TrialRun(trial=trial, experiment=experiment))
            else:
                runs.append(_on_cluster(base, makers, trial, spec.pins, overrides or {}))
        except SpecError as error:
            # Most faults are those of the setting, the same in every trial that has it.
            problems |= {(problem.what, problem.path): problem for problem in error.problems}
    if problems:
        raise SpecError(list(problems.values()), at=str(spec.path))
    return runs


def _refuse_names(base: Prepared, spec: SpecFile) -> None:
    """Raise SpecError if pods have names of their own, which only one release of a namespace can have."""
    problems = [
        Problem(
            what=f"all trials on a cluster would have the name {', '.join(pod.settings.names)}",
            path=f"{pod.path}.names",
            next=f"dial $SYMPH_<SERVICE>_ADDR, then --spec-set {pod.path}.names=null; or run them here, with --up",
        )
        for pod in pods_of(base.experiment).values()
        if pod.settings.names
    ]
    if problems:
        raise SpecError(problems, at=str(spec.path))


def _on_cluster(base: Prepared, makers: object, trial: Trial, pins: Mapping[str, int], overrides: Values) -> TrialRun:
    """Return a trial as values over the chart of `base` if both charts have the same `makers`, else with its own."""
    # What a pod keeps of a trial are its logs.
    experiment = apply(base.experiment, trial, "/dev/stdout")
    is_forced = base.plan is not None and not base.plan.fits
    named = msgspec.structs.replace(experiment, name=base.experiment.name)
    built = prepare_experiment(named, pins, force=True).built
    if _makers(built.with_values(base.built.values)) == makers:
        changes = overrides_between(base.built.values, built.values)
        values = merge(changes, _names_in(built.values, trial.name))
        if not is_forced:
            base.under(values).refuse_unschedulable()
        return TrialRun(trial=trial, experiment=experiment, values=values)
    kept = _without_changed(overrides, base.built.values, built.values)
    own = prepare_experiment(experiment, pins, overrides=kept, pools=base.own.pools, force=is_forced)
    return TrialRun(trial=trial, experiment=experiment, own=own)


def _makers(chart: BuiltChart) -> tuple[dict[str, str], Mapping[str, bytes]]:
    return chart.texts(), chart.frame.files


def _names_in(values: Any, name: str) -> Values:
    env: Values = {"env": {EXPERIMENT: name}}
    groups = {
        group: {key: dict.fromkeys(content[key], env) for key in ("initContainers", "containers") if key in content}
        for group, content in values["groups"].items()
    }
    return {"groups": groups}


def _without_changed(overrides: Values, base: Mapping[str, object], changed: Mapping[str, object]) -> Values:
    """Return `overrides` without those whose place has another value in `changed` than in `base`: a trial sets it."""
    kept: Values = {}
    for key, value in overrides.items():
        before, after = base.get(key), changed.get(key)
        if isinstance(value, dict) and isinstance(before, dict) and isinstance(after, dict):
            kept[key] = _without_changed(value, before, after)
        elif before == after:
            kept[key] = value
    return kept


def _metrics_place(name: str) -> str:
    folder = str(home() / name).replace("$(", "$$(")
    return f"{folder}/$({RUN})/{METRICS}"


# How they are is nobody's to remember, since runs, releases and workflows say that themselves. But releases are gone
# that a sweep has removed because others were better.


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """The trials of an experiment by name, in the order in which they were first asked for.

    `stopped` has for those whose releases were removed early which run that was, and why.
    """

    name: str
    backend: str
    trials: dict[str, dict[str, str]]
    namespace: str = ""
    stopped: dict[str, tuple[str, str]] = field(default_factory=dict)


def remember(sweep: Sweep, is_left: Callable[[str], bool]) -> Sweep:
    """Write `sweep` down, with those earlier trials of it of which something `is_left`; raises ToolFailed."""
    path = _path(sweep.name, sweep.backend)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with experiment_lock(f".sweep-{sweep.backend}-{sweep.name}", "symph sweep"):
        before = _read(path)
        if before is not None and before.namespace == sweep.namespace:
            earlier = {name: settings for name, settings in before.trials.items() if is_left(name)}
            sweep = replace(sweep, trials=earlier | sweep.trials, stopped=before.stopped)
        write_json(path, asdict(sweep), is_safe=True)
    return sweep


def remember_end(name: str, backend: str, trial: str, run: str, why: str) -> None:
    """Write down that the release of a trial, in this `run`, was removed early and `why`; empty: it begins anew."""
    path = _path(name, backend)
    with experiment_lock(f".sweep-{backend}-{name}", "symph sweep"):
        sweep = _read(path)
        if sweep is None or (not why and trial not in sweep.stopped):
            return
        stopped = {key: said for key, said in sweep.stopped.items() if key != trial}
        write_json(path, asdict(replace(sweep, stopped=stopped | ({trial: (run, why)} if why else {}))), is_safe=True)


def known_sweep(name: str, backend: str) -> Sweep | None:
    """Return the sweep of that name, if one was run from here."""
    return _read(_path(name, backend)) if name and "/" not in name else None


def find_sweep(name: str, backend: str) -> Sweep:
    """Return the sweep of that name; raises NotFound with those there are."""
    sweep = known_sweep(name, backend)
    if sweep is None:
        known = ", ".join(each.name for each in sweeps_of(backend)) or "none"
        raise NotFound(f'no sweep "{name}" was run from here', next=f"there are: {known}")
    return sweep


def sweeps_of(backend: str) -> list[Sweep]:
    """Return all sweeps that ran there from this machine, by name."""
    files = sorted((state_dir() / "sweeps" / backend).glob("*.json"))
    return [sweep for sweep in map(_read, files) if sweep is not None]


def _path(name: str, backend: str) -> Path:
    return state_dir() / "sweeps" / backend / f"{name}.json"


def _read(path: Path) -> Sweep | None:
    """Return the content of a file; None if it is unusable."""
    # By hand: what would check it takes a third of the time in which `symph ls` answers.
    with contextlib.suppress(NotFound, ToolFailed):
        data = read_json(path)
        trials, ends = data.get("trials"), sub(data, "stopped")
        if isinstance(trials, dict) and all(isinstance(settings, dict) for settings in trials.values()):
            return Sweep(
                name=str(data.get("name")),
                backend=str(data.get("backend")),
                trials={name: {key: str(text) for key, text in settings.items()} for name, settings in trials.items()},
                namespace=str(data.get("namespace") or ""),
                stopped={
                    name: (str(end[0]), str(end[1])) for name, end in ends.items() if isinstance(end, list) and end[1:]
                },
            )
    return None


TIMED_OUT = 124
"""The exit status of a trial that was ended since it took too long, as `timeout` of coreutils has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of a trial: its phase, exit status and seconds as far as there are any, and why it is no success.

    `is_kept`: it had ended before this sweep came to it. `is_early`: it was stopped since others are better.
    """

    trial: Trial
    state: Phase
    status: int | None = None
    seconds: float | None = None
    error: str = ""
    is_kept: bool = False
    is_early: bool = False

    @property
    def is_done(self) -> bool:
        """True if nothing is left to do: it succeeded, or was stopped for good."""
        return self.state == "succeeded" or self.is_early


def too_long(timeout_s: float) -> str:
    """Return the reason of a trial that was ended after `timeout_s`."""
    return f"took longer than {timeout_s:g} s and was ended"
