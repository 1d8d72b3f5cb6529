"""Run a sweep on a cluster as a Helm release for each trial, or as one Argo Workflow."""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import msgspec

from symphony_charts.backend.status import Phase
from symphony_charts.errors import CheckFailed, Conflict, Problem, SpecError, SymphError, ToolFailed
from symphony_charts.formats.printable import several
from symphony_charts.kinds.base import Kind, TrialObjects
from symphony_charts.kinds.registry import KINDS, deciding_objects
from symphony_charts.kubernetes.container_phase import moment_of
from symphony_charts.kubernetes.experiments import KubeExperiments
from symphony_charts.kubernetes.releases.helm_client import Revision
from symphony_charts.kubernetes.releases.releases import Releases, ReleaseSource, prepared_chart
from symphony_charts.kubernetes.releases.wait import Progress, progress_in, run_in
from symphony_charts.prepare import Prepared, Rendering
from symphony_charts.spec.files import SpecFile
from symphony_charts.sweep.local import in_parallel
from symphony_charts.sweep.metrics import Stopper
from symphony_charts.sweep.trial_runs import TIMED_OUT, Outcome, TrialRun, too_long
from symphony_charts.sweep.trials import Trial

# Maximum delay of Ctrl-C while a trial is waited for.
_LOOK_S = 10.0
# Time for pods to go, and time for which a helm may keep running after its caller was killed.
_GONE_S, _HELM_S, _HELM_LOOK_S = 120.0, 15.0, 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """Options of a sweep on a cluster: the place, waiting for each trial, and its timeout (None: no limit).

    Trials that `stopper` finds hopeless are removed; `on_end` gets the name of the trial, its run and the reason
    (empty: it starts again). `stopped` has earlier calls of `on_end`.
    """

    connect: Callable[[], Releases]
    namespace: str
    is_waiting: bool = True
    timeout_s: float | None = None
    stopper: Stopper | None = None
    stopped: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    on_end: Callable[[str, str, str], None] = lambda *_: None


def trial_objects(base: Prepared, runs: Sequence[TrialRun], namespace: str = "default") -> list[TrialObjects]:
    """Return the objects that a Workflow creates for each trial: the objects of its release, except its test pod.

    Raises:
      SpecError: A trial has settings that only a Workflow of its own can have.
    """
    if lost := list(_lost(runs)):
        raise SpecError(lost)
    trials = []
    for run in runs:
        there = release_of(base, run, namespace, is_draft=False)
        objects = [item for item in there.objects if item["kind"] != "Pod"]
        trials.append(TrialObjects(name=run.trial.name, objects=objects))
    return trials


def as_task(spec: SpecFile) -> SpecFile:
    """Return a spec whose experiment can be a task of a Workflow: a nested Workflow would only be waited for."""
    workload = spec.experiment.workload
    if not KINDS[workload.kind].is_workflow:
        return spec
    plain = msgspec.structs.replace(workload, kind=next(iter(KINDS)))
    return replace(spec, experiment=msgspec.structs.replace(spec.experiment, workload=plain))


def argo_objects(
    base: Prepared, trials: Sequence[TrialObjects], *, parallel: int | None = None
) -> list[dict[str, Any]]:
    """Return the Workflow that runs the trials, `parallel` at a time, after its RBAC objects.

    Raises SpecError for a sweep that is too large.
    """
    objects = _workflow_kind().sweep_objects(base.experiment, trials, parallel=parallel)
    return [copy.deepcopy(dict(item)) for item in objects]


def kept_there(
    experiments: KubeExperiments, trials: Sequence[TrialObjects], namespace: str, *, again: bool = False
) -> set[str]:
    """Return the names of trials that have succeeded unchanged, by the workloads that a Workflow has created.

    Raises Conflict for existing trials that have not, or with `again` for any: their objects cannot be created twice.
    """
    kept, there = set(), []
    for trial in trials:
        workloads = progress_in(experiments, [dict(item) for item in deciding_objects(trial.objects)], trial.name)
        if all(each.is_absent for each in workloads):
            continue
        if not again and all(each.state == "finished" for each in workloads):
            kept.add(trial.name)
        else:
            there.append(trial.name)
    if there:
        what = f"trials of this sweep already exist, and cannot be kept: {several(there, 5)}"
        step = f"wait for running trials, delete the others and retry: symph rm {there[0]} --on kube -n {namespace}"
        raise Conflict(what, f"namespace {namespace}", step)
    return kept


def _workflow_kind() -> Kind:
    return next(kind for kind in KINDS.values() if kind.is_workflow)


def _lost(runs: Sequence[TrialRun]) -> Iterator[Problem]:
    what = "each trial is a task of the sweep's Workflow, which would ignore this setting"
    step = "remove it, or use --on kube --up, which runs each trial as its own Workflow"
    workloads = [run.experiment.workload for run in runs]
    for path in dict.fromkeys(path for each in workloads for path in _workflow_kind().lost_in_task(each)):
        yield Problem(what=what, path=path, next=step)
    if any(KINDS[workload.kind].is_workflow for workload in workloads):
        yield Problem(
            what="an experiment of kind argo cannot be a task of the sweep's Workflow", path="workload.kind", next=step
        )


def release_of(base: Prepared, run: TrialRun, namespace: str, *, is_draft: bool = True) -> Rendering:
    prepared = run.own or base
    return prepared.under(run.values, release=run.trial.name, namespace=namespace, is_draft=is_draft)


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
    """Install a release of `source`, or of its own chart, for each trial, `parallel` at a time.

    A trial whose release has succeeded in the wanted run is kept, unless `again`; a running one is joined. Any other
    release of that name is replaced. A refusal by the cluster, or a failed Job, is the outcome of its trial. When the
    caller stops, no further trial starts, and installed ones stay.
    """
    stop = threading.Event()
    return in_parallel(
        runs,
        lambda run: _install(run, release_of(base, run, there.namespace), source, there, stop, again=again),
        parallel=parallel,
        on_start=on_start,
        on_stop=lambda _: stop.set(),
    )


def look_there(
    releases: Releases, trial: Trial, namespace: str, stopped: Mapping[str, tuple[str, str]] = MappingProxyType({})
) -> Outcome:
    """Return the outcome of a trial's release, or its reason in `stopped` if it was removed early."""
    found = releases.find(trial.name, namespace)
    if found is None:
        _, why = stopped.get(trial.name, ("", ""))
        return _stopped(trial, why) if why else Outcome(trial=trial, state="pending")
    return outcome_there(trial, found, releases.progress(trial.name, namespace))


def outcome_there(trial: Trial, found: Revision, workloads: Sequence[Progress]) -> Outcome:
    failed = next((each for each in workloads if each.state == "failed"), None)
    if failed is not None:
        return Outcome(trial=trial, state="failed", status=failed.status or 1, error=failed.why)
    if not any(each.is_absent or not each.is_done(finished=True) for each in workloads):
        return Outcome(trial=trial, state="succeeded", status=0)
    seconds = max(0.0, time.time() - moment_of(found.updated))
    held_up = next((each for each in workloads if each.state in ("queued", "waiting")), None)
    if held_up is None:
        return Outcome(trial=trial, state="running", seconds=seconds)
    state: Phase = "queued" if held_up.state == "queued" else "pending"
    return Outcome(trial=trial, state=state, seconds=seconds, error=held_up.why)


def _install(
    run: TrialRun, release: Rendering, source: ReleaseSource, there: Installation, stop: threading.Event, *, again: bool
) -> Outcome:
    began, trial, name = time.monotonic(), run.trial, run.trial.name
    wanted = run_in(release.objects)
    try:
        with there.connect() as releases:
            before = None if again else _standing(releases, trial, wanted, there)
            if before is not None and before.is_done:
                if not before.is_early:
                    _judged(there.stopper, name)
                return replace(before, is_kept=True)
            if before is None:
                if releases.find(name, there.namespace) is not None:
                    releases.uninstall(name, there.namespace, wait_s=_GONE_S)
                if name in there.stopped:
                    there.on_end(name, wanted, "")
                own = run.own and prepared_chart(run.own, source.folder, with_overrides=True)
                with own or nullcontext(source) as chart:
                    secret = chart.secret(name, there.namespace, release.values)
                    releases.install(name, chart.chart, run.values, namespace=there.namespace, secret=secret)
            if not there.is_waiting:
                return look_there(releases, trial, there.namespace)
            return _wait(releases, trial, wanted, there, began, stop)
    except SymphError as failure:
        seconds = time.monotonic() - began
        return Outcome(trial=trial, state="failed", status=failure.exit_code, seconds=seconds, error=failure.what)


def _standing(releases: Releases, trial: Trial, wanted: str, there: Installation) -> Outcome | None:
    """Return the outcome of a trial that runs or is done in the `wanted` run; None if it must be installed."""
    namespace = there.namespace
    found = releases.find(trial.name, namespace)
    deadline = time.monotonic() + _HELM_S
    while found is not None and found.status.startswith("pending") and time.monotonic() < deadline:
        # A killed process may have left its helm running.
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
    """Wait for a release to finish; check `stop` regularly, and end the release on timeout or if it is hopeless."""
    name, namespace, limit = trial.name, there.namespace, there.timeout_s
    while True:
        span = _LOOK_S if limit is None else min(_LOOK_S, began + limit - time.monotonic())
        since = time.monotonic()
        try:
            releases.wait(name, namespace, finished=True, timeout_s=max(0.0, span))
        except CheckFailed:
            # It has failed; its workloads have the reason.
            failed = look_there(releases, trial, namespace)
            return replace(failed, seconds=time.monotonic() - began)
        except ToolFailed:
            if limit is not None and time.monotonic() - began >= limit:
                releases.uninstall(name, namespace, wait_s=_GONE_S)
                seconds, why = time.monotonic() - began, too_long(limit)
                return Outcome(trial=trial, state="failed", status=TIMED_OUT, seconds=seconds, error=why)
            if stop.is_set() or time.monotonic() - since < span:
                raise
            if reason := _judged(there.stopper, name):
                why = f"stopped early: {reason}"
                there.on_end(name, run, why)
                releases.uninstall(name, namespace, wait_s=_GONE_S)
                return replace(_stopped(trial, why), seconds=time.monotonic() - began)
        else:
            _judged(there.stopper, name)
            return Outcome(trial=trial, state="succeeded", status=0, seconds=time.monotonic() - began)


def _judged(stopper: Stopper | None, name: str) -> str:
    """Return the reason why a trial is hopeless; empty if it is not, or if its logs cannot be read now."""
    try:
        return stopper.look_at(name) if stopper else ""
    except ToolFailed:
        # The trial continues; the next check tries again.
        return ""
