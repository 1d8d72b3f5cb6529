"""A sweep runs on a cluster as a Helm release for each trial, or as one Argo Workflow."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any

from symphony_charts.backend.protocol import Watcher
from symphony_charts.backend.status import LogQuery, Phase
from symphony_charts.chart.values.merge import merge
from symphony_charts.errors import CheckFailed, Conflict, NotFound, Problem, SpecError, SymphError, ToolFailed
from symphony_charts.formats.data import sub
from symphony_charts.kinds.registry import KINDS
from symphony_charts.kubernetes.experiments import KubeExperiments
from symphony_charts.kubernetes.releases.releases import Releases, Revision
from symphony_charts.kubernetes.releases.source import ReleaseSource
from symphony_charts.kubernetes.releases.wait import Progress, look, run_in
from symphony_charts.prepare import Prepared
from symphony_charts.sweep.argo import TrialObjects, deciding_objects, sweep_objects
from symphony_charts.sweep.early_stop import Stopper
from symphony_charts.sweep.local import TrialRun, in_parallel
from symphony_charts.sweep.metrics import Series, series_of
from symphony_charts.sweep.outcomes import TIMED_OUT, Outcome, too_long
from symphony_charts.sweep.trials import Trial

__all__ = [
    "Installation",
    "argo_objects",
    "expected_run",
    "install_trials",
    "kept_there",
    "look_there",
    "outcome_there",
    "series_there",
    "trial_objects",
]

# How long Ctrl-C may take while a trial is waited for.
_LOOK_S = 10.0
# How long pods may take to go, and how long a helm whose caller was killed may still be at work.
_GONE_S, _HELM_S, _HELM_LOOK_S = 120.0, 15.0, 0.5
# So many names stand in an error.
_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """Where trials are installed, whether each is waited for, and how long it may take (None: as long as it does).

    What `stopper` finds hopeless is removed, which `on_end` is told with the name of the trial, its run and why (empty:
    it begins anew); `stopped` has what it was told before.
    """

    connect: Callable[[], Releases]
    namespace: str
    is_waiting: bool = True
    timeout_s: float | None = None
    stopper: Stopper | None = None
    stopped: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    on_end: Callable[[str, str, str], None] = lambda *_: None


def trial_objects(base: Prepared, runs: Sequence[TrialRun], namespace: str = "default") -> list[TrialObjects]:
    """What a Workflow makes of each trial: the objects of its release, but for the pod that dials its services.

    Raises SpecError for what only a Workflow of its own would do for a trial.
    """
    # A Workflow inside of a Workflow would only wait for it.
    is_workflow = KINDS[base.experiment.workload.kind].is_workflow
    kind = {"workload": {"kind": next(iter(KINDS))}} if is_workflow else {}
    if is_workflow:
        _refuse_lost(base, runs)
    trials = []
    for run in runs:
        values, name = merge(run.values, kind), run.trial.name
        there = base.under(values, release=name, namespace=namespace, is_draft=False)
        trials.append(TrialObjects(name=name, objects=[item for item in there.objects if item["kind"] != "Pod"]))
    return trials


def argo_objects(
    base: Prepared, trials: Sequence[TrialObjects], *, parallel: int | None = None
) -> list[dict[str, Any]]:
    """The Workflow that runs the trials, `parallel` at a time, after the rights that it needs.

    Raises SpecError for a sweep that is too large.
    """
    account = base.experiment.workload.argo.service_account
    objects = sweep_objects(f"{base.experiment.name}-sweep", trials, parallel=parallel, service_account=account)
    copies: list[dict[str, Any]] = json.loads(json.dumps(objects))
    return copies


def kept_there(
    experiments: KubeExperiments, trials: Sequence[TrialObjects], namespace: str, *, again: bool = False
) -> set[str]:
    """The names of the trials that have succeeded as they are now, as the workloads say that a Workflow has made.

    Raises Conflict for those that are there and have not, or with `again` at all: their objects cannot be made twice.
    """
    kept, there = set(), []
    for trial in trials:
        workloads = look(experiments, [dict(item) for item in deciding_objects(trial)], trial.name)
        if all(each.is_absent for each in workloads):
            continue
        if not again and all(each.state == "finished" for each in workloads):
            kept.add(trial.name)
        else:
            there.append(trial.name)
    if there:
        names = ", ".join(there[:_SHOWN]) + (f" and {len(there) - _SHOWN} more" if len(there) > _SHOWN else "")
        what = f"there already, and not to be kept: {names}"
        step = f"wait for those that run; delete the others, then again: symph rm {there[0]} --on kube -n {namespace}"
        raise Conflict(what, f"namespace {namespace}", step)
    return kept


def _refuse_lost(base: Prepared, runs: Sequence[TrialRun]) -> None:
    """Raise SpecError for settings of `workload.argo` that a task of the sweep's Workflow has no place for."""
    lost: dict[str, None] = {}
    for run in runs:
        own = sub(sub(merge(base.values, run.values), "workload"), "argo")
        lost |= {key: None for key in _OF_A_WORKFLOW if own.get(key)}
    step = "leave it out, or use --on kube --up: there each trial is a Workflow of its own"
    what = "a trial is a task in the sweep's Workflow, which would run without this"
    if lost:
        raise SpecError([Problem(what=what, path=f"workload.argo.{key}", next=step) for key in lost])


# What a Workflow of its own does for an experiment, as the values call it.
_OF_A_WORKFLOW = ("schedules", "needs", "retries", "parameters")


def expected_run(base: Prepared, run: TrialRun, namespace: str) -> str:
    """Which run the release of a trial is in that runs what the trial is now."""
    return run_in(base.under(run.values, release=run.trial.name, namespace=namespace).objects)


def install_trials(
    runs: Iterable[TrialRun],
    base: Prepared,
    source: ReleaseSource,
    there: Installation,
    *,
    parallel: int,
    again: bool = False,
    on_start: Callable[[Trial], None] = lambda _: None,
) -> Generator[Outcome]:
    """Install a release of `source` for each trial, `parallel` at a time, each taken once there is a place for it.

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


def series_there(watcher: Watcher, name: str, pattern: re.Pattern[str] | None = None) -> Series:
    """What a trial has measured, as its logs say; nothing while it has none."""
    try:
        return series_of((line.text for line in watcher.logs(name, LogQuery())), pattern)
    except NotFound:
        return {}


def look_there(
    releases: Releases, trial: Trial, namespace: str, stopped: Mapping[str, tuple[str, str]] = MappingProxyType({})
) -> Outcome:
    """How the release of a trial is, or why it was `stopped` early and removed."""
    found = releases.find(trial.name, namespace)
    if found is None:
        _, why = stopped.get(trial.name, ("", ""))
        return _stopped(trial, why) if why else Outcome(trial=trial, state="pending")
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
            before = None if again else _standing(releases, trial, wanted, there)
            if before is not None and before.is_done:
                if there.stopper is not None and not before.is_early:
                    _judged(there.stopper, name)
                return replace(before, is_kept=True)
            if before is None:
                if releases.find(name, there.namespace) is not None:
                    releases.uninstall(name, there.namespace, wait_s=_GONE_S)
                if name in there.stopped:
                    there.on_end(name, wanted, "")
                secret = source.secret(name, there.namespace, run.values)
                releases.install(name, source.chart, run.values, namespace=there.namespace, secret=secret)
            if not there.is_waiting:
                return look_there(releases, trial, there.namespace)
            return _wait(releases, trial, wanted, there, began, stop)
    except SymphError as failure:
        seconds = time.monotonic() - began
        return Outcome(trial=trial, state="failed", status=failure.exit_code, seconds=seconds, error=failure.what)


def _standing(releases: Releases, trial: Trial, wanted: str, there: Installation) -> Outcome | None:
    """How a trial is that runs already, or is done, in the run that is `wanted`; None: it is to be installed."""
    namespace = there.namespace
    found = releases.find(trial.name, namespace)
    deadline = time.monotonic() + _HELM_S
    while found is not None and found.status.startswith("pending") and time.monotonic() < deadline:
        # Whoever was killed may have left its helm at work.
        time.sleep(_HELM_LOOK_S)
        found = releases.find(trial.name, namespace)
    if found is None:
        run, why = there.stopped.get(trial.name, ("", ""))
        return _stopped(trial, why) if run == wanted else None
    if releases.run_of(trial.name, namespace) != wanted:
        return None
    workloads = releases.progress(trial.name, namespace)
    outcome = outcome_there(trial, found, workloads)
    return None if outcome.state == "failed" or any(each.is_absent for each in workloads) else outcome


def _stopped(trial: Trial, why: str) -> Outcome:
    return Outcome(trial=trial, state="stopped", error=why, is_early=True)


def _wait(
    releases: Releases, trial: Trial, run: str, there: Installation, began: float, stop: threading.Event
) -> Outcome:
    """Wait for a release to finish, look now and then whether to `stop`, and end it once it is too late or hopeless."""
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
            if there.stopper is not None and (reason := _judged(there.stopper, name)):
                why = f"stopped early: {reason}"
                there.on_end(name, run, why)
                releases.uninstall(name, namespace, wait_s=_GONE_S)
                return replace(_stopped(trial, why), seconds=time.monotonic() - began)
        else:
            if there.stopper is not None:
                _judged(there.stopper, name)
            return Outcome(trial=trial, state="succeeded", status=0, seconds=time.monotonic() - began)


def _judged(stopper: Stopper, name: str) -> str:
    """Why a trial is hopeless; empty as well where its logs cannot be read just now."""
    try:
        return stopper.look_at(name)
    except ToolFailed:
        # It runs on, and the next look asks again.
        return ""
