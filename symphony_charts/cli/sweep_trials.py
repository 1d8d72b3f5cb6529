"""Run the trials of a sweep on this machine or on a cluster."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

from symphony_charts.cli import output
from symphony_charts.cli.experiments import phase_color, watcher_of
from symphony_charts.cli.install import open_releases
from symphony_charts.errors import CheckFailed, UsageError
from symphony_charts.formats import data
from symphony_charts.formats.yaml_write import dump_all
from symphony_charts.kubernetes.client import KubeApi
from symphony_charts.kubernetes.experiments import KubeExperiments
from symphony_charts.kubernetes.releases.releases import ReleaseSource, prepared_chart
from symphony_charts.local.runs import runs_of
from symphony_charts.prepare import Prepared
from symphony_charts.spec.files import SpecFile
from symphony_charts.sweep.kubernetes import (
    Installation,
    argo_objects,
    install_trials,
    kept_there,
    look_there,
    release_of,
    trial_objects,
)
from symphony_charts.sweep.local import done_here, look_here, run_trials, series_here, series_logged
from symphony_charts.sweep.metrics import Series, Stopper, TrialComparison, goal_of, pattern_of
from symphony_charts.sweep.record import Sweep, known_sweep, remember, remember_end
from symphony_charts.sweep.trial_runs import Outcome, TrialRun
from symphony_charts.sweep.trials import Trial
from symphony_charts.system.files import write_file
from symphony_charts.system.user_folders import refuse_elsewhere


def begin_trials(
    args: argparse.Namespace,
    spec: SpecFile,
    base: Prepared | None,
    runs: Iterable[TrialRun],
    stack: ExitStack,
    started: Callable[[Trial], None],
    *,
    parallel: int,
) -> tuple[Generator[Outcome], str]:
    """Return the outcomes of trials that run here, or as releases if there is a `base`, and the releases' namespace.

    `stack` keeps the releases' chart, and ends the trials that are left when it closes.
    """
    judge = judge_of(args)
    stopper = Stopper(judge=judge, read=reader_of(args)) if judge else None
    if base is None:
        refuse_elsewhere()
        going = run_trials(
            runs,
            spec,
            parallel=parallel,
            again=args.again,
            timeout_s=args.timeout,
            on_start=started,
            stopper=stopper,
        )
        return stack.enter_context(closing(going)), ""
    folder = spec.path.absolute().parent
    source = stack.enter_context(prepared_chart(base, folder, spec.lock.version, with_overrides=True))
    with open_releases(args, _HELM_S) as there:
        namespace = args.namespace = args.namespace or source.namespace or there.namespace
    name, before = spec.experiment.name, known_sweep(spec.experiment.name, "kube")
    place = Installation(
        connect=lambda: open_releases(args, _HELM_S),
        namespace=namespace,
        is_waiting=not args.no_wait,
        timeout_s=args.timeout,
        stopper=stopper,
        stopped=before.stopped if before is not None and before.namespace == namespace else {},
        on_end=lambda trial, run, why: remember_end(name, "kube", trial, run, why),
    )
    going = install_trials(runs, base, source, place, parallel=parallel, again=args.again, on_start=started)
    return stack.enter_context(closing(going)), namespace


def reader_of(args: argparse.Namespace) -> Callable[[str], Series]:
    """Return a function that reads the metrics of a trial from the place where it runs."""
    pattern = pattern_of(args.pattern) if args.pattern else None
    if args.on == "tmux":
        return lambda name: series_here(name, pattern)
    watcher = watcher_of(args)
    return lambda name: series_logged(watcher, name, pattern)


def outcomes_of(args: argparse.Namespace, sweep: Sweep) -> list[Outcome]:
    trials = [Trial(name=name, settings=settings) for name, settings in sweep.trials.items()]
    if sweep.backend == "tmux":
        return [look_here(trial) for trial in trials]
    with open_releases(args, _HELM_S) as releases:
        return [look_there(releases, trial, args.namespace, sweep.stopped) for trial in trials]


# Timeout of helm in seconds.
_HELM_S = 300.0


def write_or_submit(args: argparse.Namespace, spec: SpecFile, base: Prepared, runs: Sequence[TrialRun]) -> int:
    """Print the trials; write their Workflow below `--dest`, or with `--up` create it on the cluster."""
    columns, items = [*columns_of(runs[0].trial), *output.columns("workflow")], [record_of(run.trial) for run in runs]
    if args.up and not args.dry_run:
        return _submit(args, spec, base, runs, items, columns)
    namespace = args.namespace or spec.experiment.namespace or ""
    trials = trial_objects(base, runs, namespace or "default")
    objects = argo_objects(base, trials, parallel=args.parallel)
    name = objects[-1]["metadata"]["name"]
    output.print_items(args, "Trial", [{**item, "workflow": name} for item in items], columns)
    if args.dry_run:
        return 0
    file = Path(args.dest) / f"{spec.experiment.name}-sweep.yaml"
    write_file(file, dump_all(objects).encode())
    output.note(f"{len(runs)} trials in the Workflow {name}, {file}")
    if spec.experiment.secrets and spec.experiment.secret_source.source == "existing":
        output.warn("each trial uses its own Secret", "--up pushes them, or symph secrets push --release TRIAL")
    where = f" -n {namespace}" if namespace else ""
    output.next_step(f"kubectl apply -f {file}{where}", f"argo watch {name}{where}")
    return 0


def _submit(
    args: argparse.Namespace,
    spec: SpecFile,
    base: Prepared,
    runs: Sequence[TrialRun],
    items: Sequence[dict[str, object]],
    columns: Sequence[output.Column],
) -> int:
    with closing(KubeApi(Path(args.kubeconfig) if args.kubeconfig else None, args.context)) as api:
        namespace = args.namespace or spec.experiment.namespace or api.namespace
        trials = trial_objects(base, runs, namespace)
        kept = kept_there(KubeExperiments(namespace=namespace, api=api), trials, namespace, again=args.again)
        left = [trial for trial in trials if trial.name not in kept]
        objects = argo_objects(base, left, parallel=args.parallel) if left else []
        folder = spec.path.absolute().parent
        secrets = []
        for run in runs:
            built, values = (run.own or base).built, release_of(base, run, namespace).values
            source = ReleaseSource(name=built.name, chart=Path(), built=built, folder=folder, namespace=namespace)
            if run.trial.name not in kept and (secret := source.secret(run.trial.name, namespace, values)):
                secrets.append(secret)
        applied = [*secrets, *objects]
        for item in applied:
            api.apply(item, namespace, dry_run=True)
        for item in applied:
            api.apply(item, namespace)
    name = str(objects[-1]["metadata"]["name"]) if objects else ""
    marked = [(item, item["name"] in kept) for item in items]
    shown = [{**item, "workflow": "" if is_kept else name, "kept": is_kept} for item, is_kept in marked]
    output.print_items(args, "Trial", shown, columns)
    if kept:
        output.note(f"{len(kept)} of {len(runs)} trials are kept: they have succeeded as they are now")
    if left:
        output.note(f"{len(left)} trials in the Workflow {name}, in {namespace}")
        output.next_step(f"argo watch {name} -n {namespace}", "symph ls --on kube")
    return 0


def show_plan(args: argparse.Namespace, spec: SpecFile, runs: Sequence[TrialRun]) -> int:
    folder = spec.path.absolute().parent
    kept = [None if args.again else done_here(run, folder) for run in runs]
    outcomes = [done or Outcome(trial=run.trial, state="pending") for run, done in zip(runs, kept, strict=True)]
    output.print_items(args, "Trial", list(map(outcome_record, outcomes)), columns_of(runs[0].trial, outcomes))
    done = sum(outcome.is_kept for outcome in outcomes)
    output.note(f"{len(runs) - done} trials would run, {done} are done and would be kept")
    return 0


def run_all(args: argparse.Namespace, spec: SpecFile, base: Prepared | None, runs: Sequence[TrialRun]) -> int:
    outcomes: dict[str, Outcome] = {}

    def started(trial: Trial) -> None:
        outcomes[trial.name] = Outcome(trial=trial, state="running")
        output.note(f"start {trial.name}")

    if base is not None and len(runs) > _MANY:
        output.note(f"{len(runs)} releases cost helm half a second of a processor each; --on argo makes one Workflow")
    parallel = args.parallel or 1
    if base is not None and not args.parallel:
        # Each release is a helm process: more of them at a time only wait for each other.
        parallel = min(len(runs), _INSTALLED_AT_A_TIME if args.no_wait else _AT_A_TIME)
    with ExitStack() as stack:
        going, namespace = begin_trials(args, spec, base, runs, stack, started, parallel=parallel)
        remember_trials(args, spec, [run.trial for run in runs], namespace)
        count = 0
        try:
            for outcome in going:
                outcomes[outcome.trial.name] = outcome
                count += 1
                if not outcome.is_kept:
                    output.note(f"{count}/{len(runs)} {outcome.trial.name} {words_of(outcome)}")
        except KeyboardInterrupt:
            going.close()
            _print_interrupted(args, runs, outcomes, namespace)
            raise
    ordered = [outcomes[run.trial.name] for run in runs]
    return print_outcomes(args, spec.experiment.name, ordered, namespace)


# Number of trials above which a Workflow is cheaper, and the default numbers of concurrent releases.
_MANY, _INSTALLED_AT_A_TIME, _AT_A_TIME = 50, 8, 64


def print_outcomes(args: argparse.Namespace, name: str, outcomes: Sequence[Outcome], namespace: str) -> int:
    """Print the trials with the metrics of `--metric`; raise CheckFailed if some have failed."""
    columns, items = columns_of(outcomes[0].trial, outcomes) if outcomes else [], list(map(outcome_record, outcomes))
    metrics = [args.metric, *args.more_metrics] if args.metric else []
    read = reader_of(args)
    for item in items if metrics else ():
        series = read(str(item["name"]))
        item["metrics"] = {metric: series[metric][-1][1] for metric in metrics if metric in series}
    columns += [output.Column(metric.upper(), partial(metric_of, metric)) for metric in metrics]
    output.print_items(args, "Trial", items, columns)
    kept = sum(outcome.is_kept for outcome in outcomes)
    if kept:
        output.note(f"{kept} of {len(outcomes)} trials had been done before and were kept; --again runs them again")
    early = sum(outcome.is_early for outcome in outcomes)
    if early:
        output.note(f"{early} of {len(outcomes)} trials were stopped early")
    bad = [outcome for outcome in outcomes if not outcome.is_done and not (args.no_wait and outcome.state != "failed")]
    if bad:
        step = f"symph logs {bad[0].trial.name}{target_of(args, namespace)}; the same command runs them again"
        raise CheckFailed(f"{len(bad)} of {len(outcomes)} trials failed", next=step)
    if args.output == "table" and not args.no_wait:
        judged = f" --metric {args.metric}" if args.metric else ""
        output.next_step(f"symph sweep show {name}{target_of(args, namespace)}{judged}")
    return 0


def metric_of(name: str, item: Mapping[str, object]) -> object:
    value = data.sub(item, "metrics").get(name)
    return None if value is None else f"{value:.6g}"


def is_waited_for(args: argparse.Namespace) -> bool:
    """Return True if this command waits for the trials; it does not wait for a Workflow."""
    return args.up and args.on in ("tmux", "kube") and not args.no_wait


def judge_of(args: argparse.Namespace) -> TrialComparison | None:
    """Return the comparison that finds hopeless trials, if requested. Raises UsageError if nothing could stop them."""
    if not args.early_stop:
        return None
    if not args.metric:
        raise UsageError("--early-stop needs to know what to compare", next="add --metric KEY, as --metric loss")
    if not is_waited_for(args):
        what = "--early-stop ends trials that this command itself runs and waits for"
        raise UsageError(what, next="leave it out, or use --up, here or with --on kube")
    if args.grace < 0:
        raise UsageError(f"--grace takes a number of steps, got {args.grace:g}")
    return TrialComparison(
        metric=args.metric, goal=args.goal or goal_of(args.metric), rule=args.early_stop, grace=args.grace
    )


def remember_trials(args: argparse.Namespace, spec: SpecFile, trials: Sequence[Trial], namespace: str) -> None:
    """Record the sweep's trials before the first of them starts."""
    settings = {trial.name: trial.settings for trial in trials}
    sweep = Sweep(name=spec.experiment.name, backend=args.on, trials=settings, namespace=namespace)
    # Drop local trials that are gone; a cluster is not asked about each trial.
    remember(sweep, is_left=lambda name: args.on != "tmux" or bool(runs_of(name)))


def _print_interrupted(
    args: argparse.Namespace, runs: Sequence[TrialRun], outcomes: Mapping[str, Outcome], namespace: str
) -> None:
    ordered = [outcomes.get(run.trial.name) or Outcome(trial=run.trial, state="pending") for run in runs]
    if args.on == "tmux":
        ordered = [each if each.state != "running" else look_here(each.trial) for each in ordered]
    output.print_items(args, "Trial", list(map(outcome_record, ordered)), columns_of(runs[0].trial, ordered))
    done, going = sum(each.is_done for each in ordered), sum(each.state == "running" for each in ordered)
    on = f", {going} run on" if going else ""
    output.note(f"{done} of {len(runs)} trials are done{on}; the same command does the rest")
    if any(each.state != "pending" for each in ordered):
        output.next_step(
            removal([run.trial.name for run in runs], target_of(args, namespace)) + " removes what is left"
        )


def removal(names: Sequence[str], target: str = "") -> str:
    first, last = min(names), max(names)
    same = next((at for at, letter in enumerate(first) if letter != last[at]), len(first))
    return f"symph rm --match '{first[:same]}.*'{target}"


def target_of(args: argparse.Namespace, namespace: str) -> str:
    flags = [f" --on {args.on}" if args.on == "kube" else "", f" -n {namespace}" if namespace else ""]
    flags += [f" --context {args.context}" if args.context else ""]
    return "".join(flags)


def words_of(outcome: Outcome) -> str:
    status = f" ({outcome.status})" if outcome.status else ""
    after = f" after {outcome.seconds:.1f} s" if outcome.seconds is not None else ""
    return f"{outcome.state}{status}{after}{f': {outcome.error}' if outcome.error else ''}"


def record_of(trial: Trial) -> dict[str, object]:
    return {"name": trial.name, "settings": dict(trial.settings)}


def outcome_record(outcome: Outcome) -> dict[str, object]:
    return record_of(outcome.trial) | {
        "state": outcome.state,
        "status": outcome.status,
        "seconds": None if outcome.seconds is None else round(outcome.seconds, 3),
        "kept": outcome.is_kept,
        **({"error": outcome.error} if outcome.error else {}),
    }


def columns_of(trial: Trial, outcomes: Sequence[Outcome] = ()) -> list[output.Column]:
    """Return the columns of a table of trials like `trial`; with `outcomes`, also their states."""
    columns = [output.Column("TRIAL", "name")]
    for key in trial.settings:
        columns.append(output.Column(key.rpartition(".")[2].upper(), partial(_setting, key)))
    if outcomes:
        columns.append(output.Column("STATE", "state", state=lambda item: phase_color({"phase": item["state"]})))
        columns += [output.Column("EXIT", "status"), output.Column("SECONDS", "seconds")]
    if any(outcome.error for outcome in outcomes):
        columns.append(output.Column("REASON", "error"))
    return columns


def _setting(key: str, item: Mapping[str, object]) -> object:
    return data.sub(item, "settings").get(key)
