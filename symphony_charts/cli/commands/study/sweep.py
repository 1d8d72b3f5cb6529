"""`symph sweep`: one experiment, many trials that differ in a few settings."""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from symphony_charts.chart.values.merge import merge
from symphony_charts.cli import output
from symphony_charts.cli.commands.gitops import git_repository
from symphony_charts.cli.commands.study.sweep_kube import installed, write_or_submit
from symphony_charts.cli.values import prepared_of, user_values_of
from symphony_charts.errors import CheckFailed, UsageError
from symphony_charts.gitops.operations.environment_values import Given
from symphony_charts.gitops.prepare import prepare_publish, team_of
from symphony_charts.local.values import under_values
from symphony_charts.package import package, template, write
from symphony_charts.prepare import Prepared
from symphony_charts.secrets.files import guard_of
from symphony_charts.spec import files
from symphony_charts.spec.files import SpecFile
from symphony_charts.sweep.local import Outcome, TrialRun, prepare_trials, run_trials, write_trials
from symphony_charts.sweep.trials import Trial, parse_axis, parse_span, trials

__all__ = ["columns_of", "record_of", "run"]


def run(args: argparse.Namespace) -> int:
    """Write the chart and the trials' values or an Argo Workflow, or run the trials."""
    spec = files.read(args.spec)
    trials = _trials(args, spec.experiment.name)
    is_here = args.up and args.on == "tmux"
    if is_here:
        spec = under_values(spec, user_values_of(args))
        return _run(args, spec, None, prepare_trials(spec, trials, None))
    base = prepared_of(args, spec)
    if base.own.fit:
        output.note(f"fit of one trial: {base.own.fit}")
    runs = prepare_trials(spec, trials, base)
    if args.on == "argo":
        return _argo(args, spec, base, runs)
    if args.dry_run:
        output.print_items(args, "Trial", [record_of(run.trial) for run in runs], columns_of(runs[0].trial))
        return 0
    if args.up:
        return _run(args, spec, base, runs)
    return _publish(args, spec, runs) if args.env else _write(args, spec, base, runs)


def _trials(args: argparse.Namespace, base: str) -> tuple[Trial, ...]:
    for flag, number in (("--parallel", args.parallel), ("--random", args.random)):
        if number is not None and number < 1:
            raise UsageError(f"{flag} takes a number of at least 1, got {number}")
    spans = [parse_span(text, is_log=False) for text in args.uniform]
    spans += [parse_span(text, is_log=True) for text in args.loguniform]
    chance = random.Random(args.seed)  # noqa: S311 - draws trials, guards nothing
    return trials(base, [parse_axis(text) for text in args.grid], spans, draw=args.random, chance=chance)


def _write(args: argparse.Namespace, spec: SpecFile, base: Prepared, runs: Sequence[TrialRun]) -> int:
    dest = Path(args.dest)
    packaged = package(base, spec, dest, template())
    folder = dest / f"{packaged.chart.name}-trials"
    write(packaged)
    write_trials(runs, folder)
    items = [record_of(run.trial) | {"values": str(folder / f"{run.trial.name}.yaml")} for run in runs]
    output.print_items(args, "Trial", items, [*columns_of(runs[0].trial), output.Column("VALUES", "values")])
    if args.output in ("table", "wide"):
        output.note(f"{len(runs)} trials of {packaged.chart.name} {packaged.chart.version} in {packaged.folder}")
        first = runs[0].trial.name
        output.next_step(
            f"helm install {first} {packaged.folder} -f {folder / first}.yaml", f"symph sweep {args.spec} ... --up"
        )
    return 0


def _publish(args: argparse.Namespace, spec: SpecFile, runs: Sequence[TrialRun]) -> int:
    """One chart and a pointer for each trial, in one commit."""
    settings = git_repository.settings_of(args, spec.path.absolute().parent)
    env, now = settings.environment(args.env), int(time.time())
    place = settings.environments.get(env)
    candidate = prepare_publish(
        spec,
        template(),
        team=team_of(spec, args.team, settings.team),
        env=env,
        settings=None,
        overrides=user_values_of(args),
        destination=place.destination if place else None,
        pools=args.pools or settings.pools,
        force_unschedulable=args.force_unschedulable,
        expect=args.expect,
        at=git_repository.now_text(now),
    )
    common_values = place.values if place else {}
    operations = [
        replace(candidate.operation, release=run.trial.name, given=Given(files=merge(common_values, run.values)))
        for run in runs
    ]
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
        branch = git_repository.branch_of(args, settings)
        output.note(f"{len(runs)} trials -> {env}   {commit} on {branch}, {receipt.seconds:.2f} s")
    return 0


def _argo(args: argparse.Namespace, spec: SpecFile, base: Prepared, runs: Sequence[TrialRun]) -> int:
    if args.env:
        raise _clash("--env publishes releases, and --on argo makes a Workflow")
    columns = columns_of(runs[0].trial)
    return write_or_submit(args, spec, base, runs, [record_of(run.trial) for run in runs], columns)


def _clash(what: str) -> Exception:
    return UsageError(what, next="choose one")


def _run(args: argparse.Namespace, spec: SpecFile, base: Prepared | None, runs: Sequence[TrialRun]) -> int:
    """Run the trials and wait for them; the status is 1 when one fails."""

    def started(trial: Trial) -> None:
        output.note(f"start {trial.name}")

    if args.env:
        raise _clash("--env publishes the trials, and --up runs them")
    outcomes: list[Outcome] = []
    with ExitStack() as stack:
        if base is not None:
            going = installed(args, spec, base, runs, stack, started)
        else:
            going = run_trials(runs, spec, parallel=args.parallel or 1, on_start=started)
        for outcome in going:
            outcomes.append(outcome)
            how = f"failed ({outcome.status}): {outcome.error}" if outcome.status else _DONE[args.no_wait]
            output.note(f"{len(outcomes)}/{len(runs)} {outcome.trial.name} {how} after {outcome.seconds:.1f} s")
    order = {run.trial.name: number for number, run in enumerate(runs)}
    outcomes.sort(key=lambda outcome: order[outcome.trial.name])
    items = [_outcome(outcome, _DONE[args.no_wait]) for outcome in outcomes]
    output.print_items(args, "Trial", items, columns_of(runs[0].trial, ran=True))
    failed = [outcome.trial.name for outcome in outcomes if outcome.status]
    if failed:
        raise CheckFailed(f"{len(failed)} of {len(outcomes)} trials failed", next=_look(args, failed[0]))
    return 0


def record_of(trial: Trial) -> dict[str, object]:
    """A trial as an item of the output."""
    return {"name": trial.name, "settings": dict(trial.settings)}


_DONE = {False: "succeeded", True: "installed"}


def _look(args: argparse.Namespace, name: str) -> str:
    return f"symph logs {name}" + (" --on kube" if args.on == "kube" else "")


def _outcome(outcome: Outcome, done: str) -> dict[str, object]:
    state = done if outcome.status == 0 else f"failed {outcome.status}"
    return record_of(outcome.trial) | {
        "state": state,
        "status": outcome.status,
        "seconds": round(outcome.seconds, 3),
        **({"error": outcome.error} if outcome.error else {}),
    }


def columns_of(trial: Trial, *, ran: bool = False) -> list[output.Column]:
    """The columns of a table of trials like `trial`; of those that `ran`, how they ended."""
    columns = [output.Column("TRIAL", "name")]
    for key in trial.settings:
        columns.append(output.Column(key.rpartition(".")[2].upper(), _setting(key)))
    if ran:
        colour = {True: "good", False: "bad"}
        columns.append(output.Column("STATE", "state", state=lambda item: colour[item["status"] == 0]))
        columns.append(output.Column("SECONDS", "seconds"))
    return columns


def _setting(key: str) -> Callable[[Mapping[str, object]], object]:
    def text(item: Mapping[str, object]) -> object:
        settings = item["settings"]
        return settings[key] if isinstance(settings, dict) else None

    return text
