"""`symph sweep` on a cluster: releases, or an Argo Workflow."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from symphony_charts.cli import output
from symphony_charts.cli.commands.helm.release import open_releases
from symphony_charts.cli.experiments import watcher_of
from symphony_charts.formats.yaml_text import dump_all
from symphony_charts.kubernetes.client import KubeApi
from symphony_charts.kubernetes.experiments import KubeExperiments
from symphony_charts.kubernetes.releases.source import ReleaseSource, prepared_chart
from symphony_charts.prepare import Prepared
from symphony_charts.spec.files import SpecFile
from symphony_charts.sweep.early_stop import Judge, Stopper
from symphony_charts.sweep.kubernetes import (
    Installation,
    argo_objects,
    install_trials,
    kept_there,
    look_there,
    release_of,
    series_there,
    trial_objects,
)
from symphony_charts.sweep.local import look_here, series_here
from symphony_charts.sweep.metrics import Series, pattern_of
from symphony_charts.sweep.outcomes import Outcome
from symphony_charts.sweep.record import Sweep, known_sweep, remember_end
from symphony_charts.sweep.trial_runs import TrialRun
from symphony_charts.sweep.trials import Trial
from symphony_charts.system.files import write_file

__all__ = ["installed", "outcomes_of", "reader_of", "write_or_submit"]


def installed(
    args: argparse.Namespace,
    spec: SpecFile,
    base: Prepared,
    runs: Iterable[TrialRun],
    stack: ExitStack,
    started: Callable[[Trial], None],
    *,
    parallel: int,
    judge: Judge | None,
) -> tuple[Generator[Outcome], str]:
    """The outcomes of the trials as releases, and their namespace; `stack` holds their chart until all are through."""
    folder = spec.path.absolute().parent
    source = stack.enter_context(prepared_chart(base, folder, spec.lock.version, with_overrides=True))
    with open_releases(args, _HELM_S) as there:
        namespace = args.namespace or source.namespace or there.namespace
    args.namespace = namespace
    name, before = spec.experiment.name, known_sweep(spec.experiment.name, "kube")
    place = Installation(
        connect=lambda: open_releases(args, _HELM_S),
        namespace=namespace,
        is_waiting=not args.no_wait,
        timeout_s=args.timeout,
        stopper=Stopper(judge=judge, read=reader_of(args)) if judge is not None else None,
        stopped=before.stopped if before is not None and before.namespace == namespace else {},
        on_end=lambda trial, run, why: remember_end(name, "kube", trial, run, why),
    )
    going = install_trials(runs, base, source, place, parallel=parallel, again=args.again, on_start=started)
    return going, namespace


def reader_of(args: argparse.Namespace) -> Callable[[str], Series]:
    """What says of each trial what it has measured, wherever these arguments run it."""
    pattern = pattern_of(args.pattern) if args.pattern else None
    if args.on == "tmux":
        return lambda name: series_here(name, pattern)
    watcher = watcher_of(args)
    return lambda name: series_there(watcher, name, pattern)


def outcomes_of(args: argparse.Namespace, sweep: Sweep) -> list[Outcome]:
    """How the trials of a sweep are, wherever it ran."""
    trials = [Trial(name=name, settings=settings) for name, settings in sweep.trials.items()]
    if sweep.backend == "tmux":
        return [look_here(trial) for trial in trials]
    with open_releases(args, _HELM_S) as releases:
        return [look_there(releases, trial, args.namespace, sweep.stopped) for trial in trials]


# What helm itself may take, in seconds.
_HELM_S = 300.0


def write_or_submit(
    args: argparse.Namespace,
    spec: SpecFile,
    base: Prepared,
    runs: Sequence[TrialRun],
    items: Sequence[dict[str, object]],
    columns: Sequence[output.Column],
) -> int:
    """Print the trials; write their Workflow below `--dest`, or with `--up` create it on the cluster."""
    columns = [*columns, output.Column("WORKFLOW", "workflow")]
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
        next_step = "--up pushes them, or symph secrets push --release TRIAL"
        output.warn("each trial looks for a Secret of its own", next_step)
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
    """Create the Workflow of the trials that have not succeeded as they are now; `items` are those that are shown."""
    api = KubeApi(Path(args.kubeconfig).expanduser() if args.kubeconfig else None, args.context)
    try:
        namespace = args.namespace or spec.experiment.namespace or api.namespace
        trials = trial_objects(base, runs, namespace)
        kept = kept_there(KubeExperiments(namespace=namespace, api=api), trials, namespace, again=args.again)
        left = [trial for trial in trials if trial.name not in kept]
        objects = argo_objects(base, left, parallel=args.parallel) if left else []
        folder = spec.path.absolute().parent
        secrets = [_secret(base, run, folder, namespace) for run in runs if run.trial.name not in kept]
        applied = [*(secret for secret in secrets if secret is not None), *objects]
        for item in applied:
            api.apply(item, namespace, dry_run=True)
        for item in applied:
            api.apply(item, namespace)
    finally:
        api.close()
    name = str(objects[-1]["metadata"]["name"]) if objects else ""
    shown = [{**item, "workflow": "" if is_kept else name, "kept": is_kept} for item, is_kept in _marked(items, kept)]
    output.print_items(args, "Trial", shown, columns)
    if kept:
        output.note(f"{len(kept)} of {len(runs)} trials are kept: they have succeeded as they are now")
    if left:
        output.note(f"{len(left)} trials in the Workflow {name}, in {namespace}")
        output.next_step(f"argo watch {name} -n {namespace}", "symph ls --on kube")
    return 0


def _secret(base: Prepared, run: TrialRun, folder: Path, namespace: str) -> dict[str, Any] | None:
    """Return the Secret to push for a trial."""
    built = (run.own or base).built
    source = ReleaseSource(name=built.name, chart=Path(), built=built, folder=folder, namespace=namespace)
    return source.secret(run.trial.name, namespace, release_of(base, run, namespace).values)


def _marked(items: Sequence[dict[str, object]], kept: set[str]) -> list[tuple[dict[str, object], bool]]:
    return [(item, item["name"] in kept) for item in items]
