"""`symph sweep --search N`: trials that optuna proposes one after another from the results so far."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace

from symphony_charts.cli import output
from symphony_charts.cli.specs import prepared_of, user_values_of
from symphony_charts.cli.sweep_trials import (
    begin_trials,
    is_waited_for,
    outcomes_of,
    print_outcomes,
    reader_of,
    remember_trials,
    words_of,
)
from symphony_charts.errors import UsageError
from symphony_charts.local.values import under_values
from symphony_charts.spec.files import SpecFile
from symphony_charts.sweep.metrics import goal_of
from symphony_charts.sweep.record import find_sweep
from symphony_charts.sweep.search import Search
from symphony_charts.sweep.trial_runs import Outcome, TrialRun, prepare_trials
from symphony_charts.sweep.trials import Axis, Span, Trial, trial_of
from symphony_charts.system.user_folders import state_dir


def search(args: argparse.Namespace, spec: SpecFile, axes: Sequence[Axis], spans: Sequence[Span]) -> int:
    """Run the remaining trials of `--search N`, and report each result to optuna."""
    _refuse(args)
    overrides = user_values_of(args)
    base = None if args.on == "tmux" else prepared_of(args, spec)
    spec = under_values(spec, overrides) if base is None else spec
    # Check that the spec accepts every possible proposal before anything runs.
    prepare_trials(spec, list(_corners(spec.experiment.name, axes, spans)), base, overrides)
    if args.dry_run:
        keys = [*(axis.key for axis in axes), *(span.key for span in spans)]
        output.note(f"optuna would propose up to {args.search} trials of {', '.join(keys)}")
        return 0
    outcomes: dict[str, Outcome] = {}

    def asked() -> Iterator[TrialRun]:
        for trial in study.ask(args.search):
            remember_trials(args, spec, study.trials(), namespace)
            yield from prepare_trials(spec, [trial], base, overrides)

    def started(trial: Trial) -> None:
        output.note(f"start {trial.name}")

    with ExitStack() as stack:
        going, namespace = begin_trials(args, spec, base, asked(), stack, started, parallel=args.parallel or 1)
        # Trials run in a namespace, so each has a study of its own.
        name = f"{args.on}.{namespace}.{spec.experiment.name}" if namespace else spec.experiment.name
        file, goal = state_dir() / "sweeps" / "optuna" / f"{name}.journal", args.goal or goal_of(args.metric)
        study = Search(file, spec.experiment, axes, spans, metric=args.metric, goal=goal, seed=args.seed)
        read = reader_of(args)
        for outcome in going:
            name = outcome.trial.name
            outcomes[name] = outcome
            points = read(name).get(args.metric, [])
            value = points[-1][1] if points and outcome.state == "succeeded" else None
            study.tell(name, value, is_early=outcome.is_early)
            measured = "" if value is None else f", {args.metric} {value:.6g}"
            output.note(f"{len(outcomes)}: {name} {words_of(outcome)}{measured}")
    names = [trial.name for trial in study.trials()]
    if not outcomes.keys() >= set(names):
        known = outcomes_of(args, find_sweep(spec.experiment.name, args.on))
        outcomes = {outcome.trial.name: replace(outcome, is_kept=True) for outcome in known} | outcomes
    return print_outcomes(args, spec.experiment.name, [outcomes[name] for name in names], namespace)


def _refuse(args: argparse.Namespace) -> None:
    if not is_waited_for(args):
        what = "--search runs its trials itself, each after others were waited for"
        raise UsageError(what, next="add --up, here or with --on kube")
    if not args.metric:
        raise UsageError("--search needs to know what to make better", next="add --metric KEY, as --metric loss")
    if args.list or args.random is not None or args.env:
        raise UsageError("--search proposes trials by itself", next="leave out --list, --random and --env")


def _corners(base: str, axes: Sequence[Axis], spans: Sequence[Span]) -> Iterator[Trial]:
    """Yield trials that cover each value of each axis, and both ends of each span."""
    ends = {span.key: (f"{span.low:.6g}", f"{span.high:.6g}") for span in spans}
    values = {**{axis.key: axis.values for axis in axes}, **ends}
    if not values:
        raise UsageError("a search needs something to vary", next="for example: --loguniform lr=1e-5..1e-1")
    first = {key: texts[0] for key, texts in values.items()}
    yield from (trial_of(base, {**first, key: text}) for key, texts in values.items() for text in texts)
