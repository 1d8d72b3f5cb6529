"""Trials as runs: their specs or values, records and outcomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from symphony_charts.backend.status import Phase
from symphony_charts.chart.build.chart import BuiltChart
from symphony_charts.chart.release import merge, overrides_between
from symphony_charts.errors import Problem, SpecError
from symphony_charts.formats.data import Values
from symphony_charts.local.runs import home
from symphony_charts.prepare import Prepared, prepare_experiment
from symphony_charts.spec.files import SpecFile
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import pods_of
from symphony_charts.spec.variable_names import EXPERIMENT, RUN
from symphony_charts.sweep.trials import Trial, apply

METRICS = "metrics.jsonl"
"""The file in the folder of a local run to which a trial may write its metrics."""


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
      SpecError: Settings are unknown, or the spec refuses them. It has the problems of all trials.
      PlacementError: A trial cannot be scheduled although `base` can.
    """
    if base is not None and len(trials) > 1:
        _refuse_names(base, spec)
    problems: dict[tuple[str, str], Problem] = {}
    runs = []
    makers = base and _makers(base.built)
    for trial in trials:
        try:
            if base is None:
                folder = str(home() / trial.name).replace("$(", "$$(")
                experiment = apply(spec.experiment, trial, f"{folder}/$({RUN})/{METRICS}")
                runs.append(TrialRun(trial=trial, experiment=experiment))
            else:
                runs.append(_on_cluster(base, makers, trial, spec.pins, overrides or {}))
        except SpecError as error:
            # Most faults come from a setting, and are the same in every trial that has it.
            problems |= {(problem.what, problem.path): problem for problem in error.problems}
    if problems:
        raise SpecError(list(problems.values()), at=str(spec.path))
    return runs


def _refuse_names(base: Prepared, spec: SpecFile) -> None:
    """Raise SpecError if pods have `names`, which only one release of a namespace can have."""
    problems = []
    for pod in (pod for pod in pods_of(base.experiment).values() if pod.settings.names):
        what = f"all trials on a cluster would use the same name {', '.join(pod.settings.names)}"
        step = (
            f"connect to $SYMPH_<SERVICE>_ADDR and add --spec-set {pod.path}.names=null; or run the trials here: --up"
        )
        problems.append(Problem(what=what, path=f"{pod.path}.names", next=step))
    if problems:
        raise SpecError(problems, at=str(spec.path))


def _on_cluster(base: Prepared, makers: object, trial: Trial, pins: Mapping[str, int], overrides: Values) -> TrialRun:
    """Return a trial as values over the chart of `base` if both have the same `makers`, else with its own chart."""
    # Only the logs of a pod survive.
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
    """Return `overrides` without entries whose value differs between `base` and `changed`: a trial sets them."""
    kept: Values = {}
    for key, value in overrides.items():
        before, after = base.get(key), changed.get(key)
        if isinstance(value, dict) and isinstance(before, dict) and isinstance(after, dict):
            kept[key] = _without_changed(value, before, after)
        elif before == after:
            kept[key] = value
    return kept


# Outcomes are not recorded, since runs, releases and workflows have them; the exceptions are releases that a sweep
# removed because others were better.


TIMED_OUT = 124
"""The exit status of a trial that was ended by a timeout, as in `timeout` of coreutils."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of a trial: its phase, exit status and seconds if known, and the reason if it did not succeed.

    `is_kept`: it had ended before this sweep reached it. `is_early`: it was stopped because others are better.
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
        """True if the trial succeeded, or was stopped for good."""
        return self.state == "succeeded" or self.is_early


def too_long(timeout_s: float) -> str:
    return f"stopped after its timeout of {timeout_s:g} s"
