"""`symph sweep --search N`: trials that optuna proposes one after another from the results so far."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace

from symphony_charts.cli import output
from symphony_charts.cli.specs import prepared_of, user_values_of
from symphony_charts.cli.sweep_trials import (
    installed,
    is_waited_for,
    judge_of,
    outcomes_of,
    print_outcomes,
    reader_of,
    remember_trials,
    stopper_here,
    words_of,
)
from symphony_charts.errors import UsageError
from symphony_charts.local.values import under_values
from symphony_charts.spec.files import SpecFile
from symphony_charts.sweep.local import run_asked
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
        namespace, parallel = "", args.parallel or 1
        if base is not None:
            going, namespace = installed(
                args, spec, base, asked(), stack, started, parallel=parallel, judge=judge_of(args)
            )
        else:
            going = run_asked(
                asked(),
                spec,
                parallel=parallel,
                again=args.again,
                timeout_s=args.timeout,
                on_start=started,
                stopper=stopper_here(args),
            )
        study, read = _study(args, spec, axes, spans, namespace), reader_of(args)
        stack.enter_context(closing(going))
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
    return print_outcomes(args, [outcomes[name] for name in names], namespace)


def _study(
    args: argparse.Namespace, spec: SpecFile, axes: Sequence[Axis], spans: Sequence[Span], namespace: str
) -> Search:
    """Return optuna's study of these trials, one per namespace because trials run in it."""
    name = f"{args.on}.{namespace}.{spec.experiment.name}" if namespace else spec.experiment.name
    file = state_dir() / "sweeps" / "optuna" / f"{name}.journal"
    goal = args.goal or goal_of(args.metric)
    return Search(file, spec.experiment, axes, spans, metric=args.metric, goal=goal, seed=args.seed)


def _refuse(args: argparse.Namespace) -> None:
    if not is_waited_for(args):
        what = "--search runs its trials itself, each after others were waited for"
        raise UsageError(what, next="add --up, here or with --on kube")
    if not args.metric:
        raise UsageError("--search needs to know what to make better", next="add --metric KEY, as --metric loss")
    if args.list or args.random is not None or args.env:
        raise UsageError("--search proposes trials by itself", next="leave out --list, --random and --env")
    if args.search < 1:
        raise UsageError(f"--search takes a number of at least 1, got {args.search}")


def _corners(base: str, axes: Sequence[Axis], spans: Sequence[Span]) -> Iterator[Trial]:
    """Yield trials that cover each value of each axis, and both ends of each span."""
    ends = {span.key: (f"{span.low:.6g}", f"{span.high:.6g}") for span in spans}
    values = {**{axis.key: axis.values for axis in axes}, **ends}
    if not values:
        raise UsageError("a search needs something to vary", next="for example: --loguniform lr=1e-5..1e-1")
    first = {key: texts[0] for key, texts in values.items()}
    yield from (trial_of(base, {**first, key: text}) for key, texts in values.items() for text in texts)
