"""optuna proposes the settings of trials from the measurements of earlier ones (extra `optuna`).

Its study is in a file, so that a killed search resumes with its results and the same trials.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from symphony_charts.errors import ToolMissing
from symphony_charts.spec.data import to_data
from symphony_charts.spec.model import Experiment
from symphony_charts.sweep.metrics import Goal
from symphony_charts.sweep.trials import Axis, Span, Trial, trial_of

try:
    import optuna
    from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend
    from optuna.trial import FrozenTrial, TrialState
except ImportError as error:
    raise ToolMissing("--search needs the package optuna", extra="optuna") from error


class Search:
    """The study of an experiment in a file: values of axes are choices, spans are numbers.

    Another experiment, other axes or another metric are another study in the same file; `seed` is for the sampler.
    """

    def __init__(
        self,
        file: Path,
        experiment: Experiment,
        axes: Sequence[Axis],
        spans: Sequence[Span],
        *,
        metric: str,
        goal: Goal,
        seed: int,
    ) -> None:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._base = experiment.name
        self._space: dict[str, BaseDistribution] = {axis.key: CategoricalDistribution(axis.values) for axis in axes}
        self._space |= {span.key: FloatDistribution(span.low, span.high, log=span.is_log) for span in spans}
        asked = [to_data(experiment), *map(asdict, axes), *map(asdict, spans), metric, goal]
        digest = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:12]
        self._study = optuna.create_study(
            study_name=f"{experiment.name}-{digest}",
            storage=JournalStorage(JournalFileBackend(str(file))),
            direction="minimize" if goal == "min" else "maximize",
            load_if_exists=True,
        )
        # With the seed alone, a resumed search would first repeat its earlier proposals.
        count = len(self._study.get_trials(deepcopy=False))
        self._study.sampler = optuna.samplers.TPESampler(seed=seed + count)
        self._numbers: dict[str, list[int]] = {}

    def ask(self, count: int) -> Iterator[Trial]:
        """Yield the remaining trials of `count`, proposed one by one; unfinished ones come first."""
        known = self._study.get_trials(deepcopy=False)
        for frozen in known:
            if frozen.state == TrialState.RUNNING and not self._is_whole(frozen):
                # The process that asked was killed before the answer was written.
                self._study.tell(frozen.number, state=TrialState.FAIL)
            elif frozen.state == TrialState.RUNNING:
                yield self._given(frozen.number, self._trial_of(frozen))
        for _ in range(count - len(known)):
            asked = self._study.ask(self._space)
            yield self._given(asked.number, trial_of(self._base, _texts(asked.params)))

    def tell(self, name: str, value: float | None, *, is_early: bool) -> None:
        """Record the final measurement of a trial; None: it has failed. A trial stopped early is recorded as pruned."""
        for number in self._numbers.pop(name, []):
            if is_early:
                self._study.tell(number, state=TrialState.PRUNED)
            elif value is None:
                self._study.tell(number, state=TrialState.FAIL)
            else:
                self._study.tell(number, value)

    def trials(self) -> list[Trial]:
        """Return all trials proposed so far, without duplicates, in order."""
        known = filter(self._is_whole, self._study.get_trials(deepcopy=False))
        trials = map(self._trial_of, known)
        return list({trial.name: trial for trial in trials}.values())

    def _given(self, number: int, trial: Trial) -> Trial:
        # Two proposals may be the same trial, which then runs once.
        self._numbers.setdefault(trial.name, []).append(number)
        return trial

    def _is_whole(self, frozen: FrozenTrial) -> bool:
        return set(frozen.params) == set(self._space)

    def _trial_of(self, frozen: FrozenTrial) -> Trial:
        return trial_of(self._base, _texts(frozen.params))


def _texts(params: dict[str, object]) -> dict[str, str]:
    return {key: f"{value:.6g}" if isinstance(value, float) else str(value) for key, value in params.items()}
