"""A sweep runs on a cluster as a Helm release for each trial, or as one Argo Workflow."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from symphony_charts.chart.values.merge import merge
from symphony_charts.errors import SymphError, ToolFailed
from symphony_charts.kinds.registry import KINDS
from symphony_charts.kubernetes.releases.releases import Releases
from symphony_charts.kubernetes.releases.source import ReleaseSource
from symphony_charts.prepare import Prepared
from symphony_charts.sweep.argo import TrialObjects, sweep_objects
from symphony_charts.sweep.local import Outcome, TrialRun, in_parallel
from symphony_charts.sweep.trials import Trial

__all__ = ["Installation", "argo_objects", "install_trials"]

# How long Ctrl-C may take while a trial is waited for.
_LOOK_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """Where trials are installed: how to reach the cluster, and how long to wait for each (None: not at all)."""

    connect: Callable[[], Releases]
    namespace: str
    wait_s: float | None


def argo_objects(
    base: Prepared, runs: Sequence[TrialRun], *, parallel: int | None = None, namespace: str = "default"
) -> list[dict[str, Any]]:
    """The Workflow that runs the trials, `parallel` at a time, after the rights that it needs.

    A trial's objects are those of its release, but for what only helm does: the pod that dials its services. Raises
    SpecError for a sweep that is too large.
    """
    experiment = base.experiment
    # A Workflow inside of a Workflow would only wait for it.
    is_workflow = KINDS[experiment.workload.kind].is_workflow
    kind = {"workload": {"kind": next(iter(KINDS))}} if is_workflow else {}
    trials = []
    for run in runs:
        run_objects = base.under(merge(run.values, kind), release=run.trial.name, namespace=namespace).objects
        trials.append(
            TrialObjects(name=run.trial.name, objects=[item for item in run_objects if item["kind"] != "Pod"])
        )
    account = experiment.workload.argo.service_account
    objects = sweep_objects(f"{experiment.name}-sweep", trials, parallel=parallel, service_account=account)
    copies: list[dict[str, Any]] = json.loads(json.dumps(objects))
    return copies


def install_trials(
    runs: Sequence[TrialRun],
    source: ReleaseSource,
    there: Installation,
    *,
    parallel: int,
    on_start: Callable[[Trial], None] = lambda _: None,
) -> Iterator[Outcome]:
    """Install a release of `source` for each trial, `parallel` at a time, each outcome as it comes.

    What the cluster refuses, and a Job that fails, is the outcome of its trial. When the caller stops no other is
    begun, and what is installed stays.
    """
    stop = threading.Event()
    return in_parallel(
        runs,
        lambda run: _install(run, source, there, stop),
        parallel=parallel,
        on_start=on_start,
        on_stop=lambda _: stop.set(),
    )


def _install(run: TrialRun, source: ReleaseSource, there: Installation, stop: threading.Event) -> Outcome:
    began = time.monotonic()
    name, status, error = run.trial.name, 0, ""
    try:
        with there.connect() as releases:
            secret = source.secret(name, there.namespace, run.values)
            releases.install(name, source.chart, run.values, namespace=there.namespace, secret=secret)
            if there.wait_s is not None:
                _wait(releases, name, there.namespace, there.wait_s, stop)
    except SymphError as failure:
        status, error = failure.exit_code, failure.what
    return Outcome(trial=run.trial, status=status, seconds=time.monotonic() - began, error=error)


def _wait(releases: Releases, name: str, namespace: str, timeout_s: float, stop: threading.Event) -> None:
    """Wait for a release to finish, and look now and then whether to `stop`."""
    deadline = time.monotonic() + timeout_s
    while True:
        began = time.monotonic()
        span = min(_LOOK_S, deadline - began)
        try:
            return releases.wait(name, namespace, finished=True, timeout_s=span)
        except ToolFailed:
            is_over = stop.is_set() or span < _LOOK_S
            if is_over or time.monotonic() - began < span:
                raise
