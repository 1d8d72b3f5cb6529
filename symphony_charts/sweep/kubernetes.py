"""A sweep runs on a cluster as a Helm release for each trial, or as one Argo Workflow."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from symphony_charts.backend.status import Phase
from symphony_charts.chart.values.merge import merge
from symphony_charts.errors import CheckFailed, SymphError, ToolFailed
from symphony_charts.kinds.registry import KINDS
from symphony_charts.kubernetes.releases.releases import Releases, Revision
from symphony_charts.kubernetes.releases.source import ReleaseSource
from symphony_charts.kubernetes.releases.wait import Progress, run_in
from symphony_charts.prepare import Prepared
from symphony_charts.sweep.argo import TrialObjects, sweep_objects
from symphony_charts.sweep.local import TrialRun, in_parallel
from symphony_charts.sweep.outcomes import TIMED_OUT, Outcome, too_long
from symphony_charts.sweep.trials import Trial

__all__ = ["Installation", "argo_objects", "expected_run", "install_trials", "look_there", "outcome_there"]

# How long Ctrl-C may take while a trial is waited for.
_LOOK_S = 10.0
# How long pods may take to go, and how long a helm whose caller was killed may still be at work.
_GONE_S, _HELM_S, _HELM_LOOK_S = 120.0, 15.0, 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """Where trials are installed, whether each is waited for, and how long it may take (None: as long as it does)."""

    connect: Callable[[], Releases]
    namespace: str
    is_waiting: bool = True
    timeout_s: float | None = None


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


def expected_run(base: Prepared, run: TrialRun, namespace: str) -> str:
    """Which run the release of a trial is in that runs what the trial is now."""
    return run_in(base.under(run.values, release=run.trial.name, namespace=namespace).objects)


def install_trials(
    runs: Sequence[TrialRun],
    base: Prepared,
    source: ReleaseSource,
    there: Installation,
    *,
    parallel: int,
    again: bool = False,
    on_start: Callable[[Trial], None] = lambda _: None,
) -> Generator[Outcome]:
    """Install a release of `source` for each trial, `parallel` at a time, each outcome as it comes.

    A trial whose release has succeeded in the run that is wanted is kept, unless all is to run `again`, and one that
    goes on is joined; any other release of that name is replaced. What the cluster refuses, and a Job that fails, is
    the outcome of its trial. When the caller stops no other is begun, and what is installed stays.
    """
    stop = threading.Event()
    return in_parallel(
        runs,
        lambda run: _install(run, expected_run(base, run, there.namespace), source, there, stop, again=again),
        parallel=parallel,
        on_start=on_start,
        on_stop=lambda _: stop.set(),
    )


def look_there(releases: Releases, trial: Trial, namespace: str) -> Outcome:
    """How the release of a trial is."""
    found = releases.find(trial.name, namespace)
    if found is None:
        return Outcome(trial=trial, state="pending")
    return outcome_there(trial, found, releases.progress(trial.name, namespace))


def outcome_there(trial: Trial, found: Revision, workloads: Sequence[Progress]) -> Outcome:
    """How a trial is whose release and workloads these are."""
    failed = next((each for each in workloads if each.state == "failed"), None)
    if failed is not None:
        return Outcome(trial=trial, state="failed", status=failed.status or 1, error=failed.why)
    if not any(each.is_absent for each in workloads) and all(map(_has_ended, workloads)):
        return Outcome(trial=trial, state="succeeded", status=0)
    seconds = _age(found)
    held_up = next((each for each in workloads if each.state in ("queued", "waiting")), None)
    if held_up is None:
        return Outcome(trial=trial, state="running", seconds=seconds)
    state: Phase = "queued" if held_up.state == "queued" else "pending"
    return Outcome(trial=trial, state=state, seconds=seconds, error=held_up.why)


def _has_ended(workload: Progress) -> bool:
    return workload.state == "finished" or (workload.is_endless and workload.state == "ready")


def _age(found: Revision) -> float:
    """How long ago a revision was made, in seconds; 0 where helm does not say."""
    try:
        return max(0.0, time.time() - datetime.fromisoformat(found.updated.replace("Z", "+00:00")).timestamp())
    except ValueError:
        return 0.0


def _install(
    run: TrialRun, wanted: str, source: ReleaseSource, there: Installation, stop: threading.Event, *, again: bool
) -> Outcome:
    """Bring the release of a trial to where it is wanted, and wait for it."""
    began, trial, name = time.monotonic(), run.trial, run.trial.name
    try:
        with there.connect() as releases:
            before = None if again else _standing(releases, trial, wanted, there.namespace)
            if before is not None and before.is_done:
                return replace(before, is_kept=True)
            if before is None:
                if releases.find(name, there.namespace) is not None:
                    releases.uninstall(name, there.namespace, wait_s=_GONE_S)
                secret = source.secret(name, there.namespace, run.values)
                releases.install(name, source.chart, run.values, namespace=there.namespace, secret=secret)
            if not there.is_waiting:
                return look_there(releases, trial, there.namespace)
            return _wait(releases, trial, there, began, stop)
    except SymphError as failure:
        seconds = time.monotonic() - began
        return Outcome(trial=trial, state="failed", status=failure.exit_code, seconds=seconds, error=failure.what)


def _standing(releases: Releases, trial: Trial, wanted: str, namespace: str) -> Outcome | None:
    """How a trial is that runs already, or has succeeded, in the run that is `wanted`; None: it is to be installed."""
    found = releases.find(trial.name, namespace)
    deadline = time.monotonic() + _HELM_S
    while found is not None and found.status.startswith("pending") and time.monotonic() < deadline:
        # Whoever was killed may have left its helm at work.
        time.sleep(_HELM_LOOK_S)
        found = releases.find(trial.name, namespace)
    if found is None or releases.run_of(trial.name, namespace) != wanted:
        return None
    workloads = releases.progress(trial.name, namespace)
    outcome = outcome_there(trial, found, workloads)
    return None if outcome.state == "failed" or any(each.is_absent for each in workloads) else outcome


def _wait(releases: Releases, trial: Trial, there: Installation, began: float, stop: threading.Event) -> Outcome:
    """Wait for a release to finish, look now and then whether to `stop`, and end it once it takes too long."""
    name, namespace, limit = trial.name, there.namespace, there.timeout_s
    while True:
        span = _LOOK_S if limit is None else min(_LOOK_S, began + limit - time.monotonic())
        since = time.monotonic()
        try:
            releases.wait(name, namespace, finished=True, timeout_s=max(0.0, span))
        except CheckFailed:
            # It has failed; how, its workloads say.
            failed = look_there(releases, trial, namespace)
            return replace(failed, seconds=time.monotonic() - began)
        except ToolFailed:
            if limit is not None and time.monotonic() - began >= limit:
                releases.uninstall(name, namespace, wait_s=_GONE_S)
                seconds, why = time.monotonic() - began, too_long(limit)
                return Outcome(trial=trial, state="failed", status=TIMED_OUT, seconds=seconds, error=why)
            if stop.is_set() or time.monotonic() - since < span:
                raise
        else:
            return Outcome(trial=trial, state="succeeded", status=0, seconds=time.monotonic() - began)
