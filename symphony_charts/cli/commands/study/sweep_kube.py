"""`symph sweep` on a cluster: releases, or an Argo Workflow."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack
from pathlib import Path

from symphony_charts.cli import output
from symphony_charts.cli.commands.helm.release import open_releases
from symphony_charts.formats.yaml_text import dump_all
from symphony_charts.kubernetes.client import KubeApi
from symphony_charts.kubernetes.releases.source import ReleaseSource, prepared_chart
from symphony_charts.prepare import Prepared
from symphony_charts.spec.files import SpecFile
from symphony_charts.sweep.kubernetes import Installation, argo_objects, install_trials
from symphony_charts.sweep.local import TrialRun
from symphony_charts.sweep.outcomes import Outcome
from symphony_charts.sweep.trials import Trial
from symphony_charts.system.files import write_file

__all__ = ["installed", "write_or_submit"]


def installed(
    args: argparse.Namespace,
    spec: SpecFile,
    base: Prepared,
    runs: Sequence[TrialRun],
    stack: ExitStack,
    started: Callable[[Trial], None],
) -> tuple[Generator[Outcome], str]:
    """The outcomes of the trials as releases, and their namespace; `stack` holds their chart until all are through."""
    folder = spec.path.absolute().parent
    source = stack.enter_context(prepared_chart(base, folder, spec.lock.version))
    with open_releases(args, _HELM_S) as there:
        namespace = args.namespace or source.namespace or there.namespace
    place = Installation(
        connect=lambda: open_releases(args, _HELM_S),
        namespace=namespace,
        is_waiting=not args.no_wait,
        timeout_s=args.timeout,
    )
    # helm is a process for each release: more at a time only wait for each other.
    parallel = args.parallel or min(len(runs), _INSTALLED_AT_A_TIME if args.no_wait else _AT_A_TIME)
    if len(runs) > _MANY:
        output.note(f"{len(runs)} releases cost helm half a second of a processor each; --on argo makes one Workflow")
    going = install_trials(runs, base, source, place, parallel=parallel, again=args.again, on_start=started)
    return going, namespace


# What helm itself may take, in seconds, and from how many trials on a Workflow is cheaper.
_HELM_S, _MANY = 300.0, 50
_INSTALLED_AT_A_TIME, _AT_A_TIME = 8, 64


def write_or_submit(
    args: argparse.Namespace,
    spec: SpecFile,
    base: Prepared,
    runs: Sequence[TrialRun],
    items: Sequence[dict[str, object]],
    columns: Sequence[output.Column],
) -> int:
    """Print the trials; write their Workflow below `--dest`, or with `--up` create it on the cluster."""
    namespace = args.namespace or spec.experiment.namespace or ""
    objects = argo_objects(base, runs, parallel=args.parallel, namespace=namespace or "default")
    name = objects[-1]["metadata"]["name"]
    shown = [{**item, "workflow": name} for item in items]
    output.print_items(args, "Trial", shown, [*columns, output.Column("WORKFLOW", "workflow")])
    if args.dry_run:
        return 0
    if args.up:
        return _submit(args, spec, runs, objects)
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
    args: argparse.Namespace, spec: SpecFile, runs: Sequence[TrialRun], objects: Sequence[dict[str, object]]
) -> int:
    api = KubeApi(Path(args.kubeconfig).expanduser() if args.kubeconfig else None, args.context)
    try:
        namespace = args.namespace or spec.experiment.namespace or api.namespace
        folder = spec.path.absolute().parent
        source = ReleaseSource(
            name=spec.experiment.name, chart=Path(), experiment=spec.experiment, folder=folder, namespace=namespace
        )
        secrets = [source.secret(run.trial.name, namespace, run.values) for run in runs]
        applied = [*(secret for secret in secrets if secret is not None), *objects]
        for item in applied:
            api.apply(item, namespace, dry_run=True)
        for item in applied:
            api.apply(item, namespace)
    finally:
        api.close()
    name = objects[-1]["metadata"]["name"]  # type: ignore[index]  # a Workflow of ours
    output.note(f"{len(runs)} trials in the Workflow {name}, in {namespace}")
    output.next_step(f"argo watch {name} -n {namespace}", "symph ls --on kube")
    return 0
