"""`symph sweep`: one experiment, many trials that differ in a few settings."""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from symphony_charts.chart.files.chart import Chart
from symphony_charts.chart.values.merge import merge, overrides_between
from symphony_charts.cli import output
from symphony_charts.cli.commands.gitops import git_repository
from symphony_charts.cli.commands.study.sweep_kube import write_or_submit
from symphony_charts.cli.commands.study.sweep_run import columns_of, judge_of, record_of, run_all, show_plan
from symphony_charts.cli.commands.study.sweep_show import show
from symphony_charts.cli.options.defaults import typed
from symphony_charts.cli.values import prepared_of, user_values_of
from symphony_charts.errors import NotFound, SpecError, UsageError
from symphony_charts.formats.data import Values
from symphony_charts.gate import judge
from symphony_charts.gitops.operations.environment_values import Given
from symphony_charts.gitops.operations.publish import Publish
from symphony_charts.gitops.prepare import prepare_publish, team_of
from symphony_charts.local.values import under_values
from symphony_charts.package import package, template, write
from symphony_charts.prepare import Prepared
from symphony_charts.secrets.files import guard_of
from symphony_charts.spec import files
from symphony_charts.spec.files import SpecFile
from symphony_charts.spec.lockfile import Lock
from symphony_charts.sweep.kubernetes import as_task
from symphony_charts.sweep.local import write_trials
from symphony_charts.sweep.trial_runs import TrialRun, prepare_trials
from symphony_charts.sweep.trials import Axis, Span, Trial, parse_axis, parse_points, parse_span, trials

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Write the chart and the trials' values or an Argo Workflow, or run the trials."""
    if args.spec == "show":
        return show(args)
    if args.sweep_name:
        raise UsageError(
            f'there is a word too many: "{args.sweep_name}"', next="symph sweep SPEC, or symph sweep show NAME"
        )
    judge_of(args)
    spec = files.read(args.spec, args.spec_set)
    if args.search is not None:
        return _search(args, spec)
    trials = _trials(args, spec.experiment.name)
    if typed(args, "env") and args.up:
        raise _clash("--env publishes the trials, and --up runs them")
    overrides = user_values_of(args)
    if args.up and args.on == "tmux":
        spec = under_values(spec, overrides)
        here = prepare_trials(spec, trials, None)
        return show_plan(args, spec, here) if args.dry_run else run_all(args, spec, None, here)
    spec = as_task(spec) if args.on == "argo" else spec
    base = prepared_of(args, spec)
    if base.own.fit:
        output.note(f"fit of one trial: {base.own.fit}")
    runs = prepare_trials(spec, trials, base, overrides)
    if args.on == "argo":
        return _argo(args, spec, base, runs)
    if args.dry_run:
        output.print_items(args, "Trial", [record_of(run.trial) for run in runs], columns_of(runs[0].trial))
        return 0
    if args.up:
        return run_all(args, spec, base, runs)
    return _publish(args, spec, runs) if typed(args, "env") else _write(args, spec, base, runs)


def _trials(args: argparse.Namespace, base: str) -> tuple[Trial, ...]:
    for flag, number in (("--parallel", args.parallel), ("--random", args.random)):
        if number is not None and number < 1:
            raise UsageError(f"{flag} takes a number of at least 1, got {number}")
    axes, spans = _space(args)
    points = parse_points(_text_of(args.list), args.list) if args.list else ()
    chance = random.Random(args.seed)  # noqa: S311 - draws trials, guards nothing
    return trials(base, axes, spans, points, draw=args.random, chance=chance)


def _space(args: argparse.Namespace) -> tuple[list[Axis], list[Span]]:
    """What is varied: settings with their values, and those that are drawn between two numbers."""
    spans = [parse_span(text, is_log=False) for text in args.uniform]
    spans += [parse_span(text, is_log=True) for text in args.loguniform]
    axes = [parse_axis(text) for text in args.grid]
    for axis in axes:
        if axis.equal:
            output.note(f"{axis.key}: {', '.join(axis.equal)} equals a value before it, which is one trial")
    return axes, spans


def _search(args: argparse.Namespace, spec: SpecFile) -> int:
    # optuna takes half a second to import, which a grid has not.
    from symphony_charts.cli.commands.study.sweep_search import search

    return search(args, spec, *_space(args))


def _text_of(file: str) -> str:
    """The text of the file of points; ``-`` is what comes in."""
    try:
        return sys.stdin.read() if file == "-" else Path(file).expanduser().read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise NotFound(
            f"there is no file {file}", next="--list takes a table in CSV: lr,seed on its first line"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError.one(f"cannot read the points: {error}", at=file) from error


def _write(args: argparse.Namespace, spec: SpecFile, base: Prepared, runs: Sequence[TrialRun]) -> int:
    dest = Path(args.dest)
    filled, is_forced = template(), args.force_unschedulable
    packaged = package(base, spec, dest, filled, is_forced=is_forced)
    folder = dest / f"{packaged.chart.name}-trials"
    charts: dict[str, Chart] = {}
    for run in runs:
        if run.own is not None:
            charts[run.trial.name] = run.own.chart(filled, packaged.chart.version)
            judge(spec, run.own, charts[run.trial.name], is_forced=is_forced).refuse()
    write(packaged)
    write_trials(runs, folder, charts)
    items: list[dict[str, object]] = [
        {
            **record_of(run.trial),
            "values": str(folder / f"{run.trial.name}.yaml"),
            "chart": str(folder / f"{run.trial.name}.tgz" if run.own is not None else packaged.folder),
        }
        for run in runs
    ]
    columns = [*columns_of(runs[0].trial), output.Column("VALUES", "values")]
    output.print_items(args, "Trial", items, [*columns, output.Column("CHART", "chart", is_wide=not charts)])
    if args.output in ("table", "wide"):
        own = f", {len(charts)} of them with a chart of their own" if charts else ""
        name, version = packaged.chart.name, packaged.chart.version
        output.note(f"{len(runs)} trials of {name} {version} in {packaged.folder}{own}")
        first = items[0]
        output.next_step(
            f"helm install {first['name']} {first['chart']} -f {first['values']}", f"symph sweep {args.spec} ... --up"
        )
    return 0


def _publish(args: argparse.Namespace, spec: SpecFile, runs: Sequence[TrialRun]) -> int:
    """Publish a pointer for each trial in one commit, with the chart that they share and those of single trials."""
    settings = git_repository.settings_of(args, spec.path.absolute().parent)
    env, now = settings.environment(args.env), int(time.time())
    place = settings.environments.get(env)
    common_values = place.values if place else {}

    def operation_of(spec: SpecFile, overrides: Values) -> Publish:
        candidate = prepare_publish(
            spec,
            template(),
            team=team_of(spec, args.team, settings.team),
            env=env,
            settings=None,
            overrides=overrides,
            destination=place.destination if place else None,
            pools=args.pools,
            force_unschedulable=args.force_unschedulable,
            expect=args.expect,
            at=git_repository.now_text(now),
        )
        return candidate.operation

    shared = operation_of(spec, user_values_of(args))
    operations = []
    for run in runs:
        operation, own = shared, run.own
        if own is not None:
            trial = replace(spec, experiment=run.experiment, lock=Lock(ports=spec.pins))
            operation = operation_of(trial, overrides_between(own.built.values, own.values))
        given = Given(files=merge(common_values, run.values))
        operations.append(replace(operation, release=run.trial.name, given=given))
    guard = guard_of([spec], settings.allowed_leaks)
    store = None if args.into is not None else git_repository.open_store(args, settings, guard)
    changes, receipt = git_repository.carry_out(args, store, operations, now, guard)
    items = [
        record_of(run.trial) | {"version": change.facts["version"], "env": env}
        for run, change in zip(runs, changes, strict=True)
    ]
    output.print_items(args, "Trial", items, [*columns_of(runs[0].trial), output.Column("VERSION", "version")])
    if receipt is not None and args.output in ("table", "wide"):
        commit = f"commit {receipt.commit[:7]}" if receipt.commit else "nothing to change"
        branch = git_repository.branch_of(args, settings).branch
        output.note(f"{len(runs)} trials -> {env}   {commit} on {branch}, {receipt.seconds:.2f} s")
    return 0


def _argo(args: argparse.Namespace, spec: SpecFile, base: Prepared, runs: Sequence[TrialRun]) -> int:
    if typed(args, "env"):
        raise _clash("--env publishes releases, and --on argo makes a Workflow")
    if args.timeout is not None:
        raise UsageError("a Workflow is not waited for, so --timeout ends none of its trials", next="set `deadline`")
    if args.again and not args.up:
        raise UsageError("a Workflow in a file has every trial, so --again has nothing to add", next="leave it out")
    columns = columns_of(runs[0].trial)
    return write_or_submit(args, spec, base, runs, [record_of(run.trial) for run in runs], columns)


def _clash(what: str) -> Exception:
    return UsageError(what, next="choose one")
