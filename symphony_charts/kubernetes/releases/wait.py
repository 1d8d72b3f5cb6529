"""Waiting for a release: a finished Job is a success, a failed one ends the wait with its reason."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from symphony_charts.errors import CheckFailed, Conflict, ToolFailed
from symphony_charts.kinds.dijob.pods import pods_of_jobs, selectors_of
from symphony_charts.kinds.outcome import end_of, is_whole, word_of
from symphony_charts.kubernetes import kueue, watches
from symphony_charts.kubernetes.client import KubeApi

__all__ = ["FINITE", "Progress", "look", "progress_of", "run_in", "wait_for", "wait_gone"]

Object = dict[str, Any]
State = Literal["queued", "waiting", "ready", "finished", "failed"]

# Kinds that end; a StatefulSet runs until it is removed.
FINITE = ("Job", "JobSet", "Workflow", "DIJob", "AppWrapper")
_POD = ("v1", "Pod")
_WATCHED = (("batch/v1", "Job"), ("apps/v1", "StatefulSet"), _POD)
_SUSPENDED = "suspended until somebody resumes it"
_TIME_IS_UP = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far one workload is; `why` says what holds it up or made it fail."""

    title: str
    state: State
    why: str = ""


def wait_for(
    api: KubeApi, manifest: Sequence[Object], name: str, namespace: str, finished: bool, timeout_s: float
) -> None:
    """Return when every workload of `manifest` is ready or finished; with `finished` Jobs must have finished.

    Raises CheckFailed as soon as one has failed, and ToolFailed with what is missing after `timeout_s`.
    """
    kinds = dict.fromkeys([*_WATCHED, *_workload_kinds(manifest)])
    watched = [(kind, _selector(name)) for kind in kinds if api.serves(*kind)]
    with contextlib.closing(
        watches.changes(api, lambda kind: api.collection(*kind, namespace), watched, timeout_s)
    ) as changes:
        missing = _missing(look(api, manifest, name, namespace), name, namespace, finished)
        while missing and next(changes, _TIME_IS_UP) is not _TIME_IS_UP:
            missing = _missing(look(api, manifest, name, namespace), name, namespace, finished)
    if missing:
        what = "; ".join(f"{one.title}: {one.why or one.state}" for one in missing)
        next_step = f"wait longer with --timeout, or look: symph p {name}"
        raise ToolFailed(f"not ready after {timeout_s:g} s: {what}", namespace, next_step)


def _missing(found: Sequence[Progress], name: str, namespace: str, finished: bool) -> list[Progress]:
    """The workloads to wait for; raises CheckFailed where one has failed."""
    failed = [one for one in found if one.state == "failed"]
    if failed:
        what = "; ".join(f"{one.title} failed: {one.why}" for one in failed)
        raise CheckFailed(what, f"release {name}, namespace {namespace}", f"symph logs {name} shows what it said")
    return [one for one in found if not _is_done(one, finished=finished)]


def run_in(manifest: Sequence[Object]) -> str:
    """The run that the objects of a release are of, as its workloads say; empty where none does."""
    labels = (item["metadata"].get("labels") or {} for item in manifest if item["kind"] in (*FINITE, "StatefulSet"))
    return next((str(one["symph.dev/run"]) for one in labels if "symph.dev/run" in one), "")


def _is_done(one: Progress, *, finished: bool) -> bool:
    is_endless = one.title.partition("/")[0] == "StatefulSet"
    return one.state == "finished" or (one.state == "ready" and (is_endless or not finished))


def wait_gone(api: KubeApi, manifest: Sequence[Object], selector: str, namespace: str, timeout_s: float) -> None:
    """Return when no pod has the labels of `selector`, nor those of a DIJob's pods; Conflict after `timeout_s`."""
    selectors = (selector, *selectors_of([item for item in manifest if item["kind"] == "DIJob"]))

    def pods() -> list[Object]:
        return [pod for labels in selectors for pod in api.of_kind(*_POD, namespace, labels)]

    watched = [(_POD, labels) for labels in selectors]
    with contextlib.closing(
        watches.changes(api, lambda kind: api.collection(*kind, namespace), watched, timeout_s)
    ) as changes:
        left = pods()
        while left and next(changes, _TIME_IS_UP) is not _TIME_IS_UP:
            left = pods()
    if left:
        names = ", ".join(item["metadata"]["name"] for item in left)
        raise Conflict(f"pods are still there after {timeout_s:g} s: {names}", namespace, "they end by themselves")


def look(api: KubeApi, manifest: Sequence[Object], name: str, namespace: str) -> list[Progress]:
    """How far each workload of the manifest of release `name` is."""
    selector = _selector(name)
    workloads = [item for item in manifest if item["kind"] in (*FINITE, "StatefulSet")]
    live = {
        (item["kind"], item["metadata"]["name"]): {**item, "apiVersion": kind[0]}
        for kind in _workload_kinds(manifest)
        for item in api.of_kind(*kind, namespace, selector)
    }
    pods = api.of_kind("v1", "Pod", namespace, selector)
    jobs = [item for item in live.values() if item["kind"] == "DIJob"]
    pods += pods_of_jobs(jobs, lambda labels: api.of_kind("v1", "Pod", namespace, labels))
    waits = _waits(api, list(live.values()), namespace)
    return [
        progress_of(item, live.get((item["kind"], item["metadata"]["name"])), _pods_of(item, pods), waits)
        for item in workloads
    ]


def _waits(api: KubeApi, workloads: Sequence[Object], namespace: str) -> Mapping[str, str]:
    """Why each suspended workload waits, by uid; without Kueue's reason for whoever may not read its records."""
    if not any(map(kueue.is_suspended, workloads)):
        return {}
    admissions: list[Object] = []
    for kind in kueue.KINDS:
        with contextlib.suppress(ToolFailed):
            admissions = admissions or api.of_kind(*kind, namespace, "")
    return kueue.reasons_of(workloads, admissions)


def _workload_kinds(manifest: Sequence[Object]) -> list[tuple[str, str]]:
    """The kinds of what runs pods in a manifest, as API version and kind."""
    found = ((item["apiVersion"], item["kind"]) for item in manifest if item["kind"] in (*FINITE, "StatefulSet"))
    return list(dict.fromkeys(found))


def _selector(name: str) -> str:
    return f"app.kubernetes.io/instance={name},symph.dev/experiment"


def progress_of(
    wanted: Object, live: Object | None, pods: Sequence[Object], waits: Mapping[str, str] | None = None
) -> Progress:
    """How far the workload `wanted` (from the manifest) is, given the cluster's copy of it and its pods.

    `waits` says by uid why a suspended one waits.
    """
    title = f"{wanted['kind']}/{wanted['metadata']['name']}"
    if live is None:
        return Progress(title=title, state="waiting", why="not there yet")
    status = live.get("status") or {}
    held = {one["type"]: one for one in status.get("conditions") or [] if one.get("status") == "True"}
    for kind in ("Failed", "FailureTarget"):
        if kind in held:
            said = f"{held[kind].get('reason', '')}: {held[kind].get('message', '')}".strip(": ")
            return Progress(title=title, state="failed", why="; ".join([said, *_ends(pods)]))
    end = end_of({**live, "apiVersion": wanted.get("apiVersion", "")}) if is_whole(wanted) else None
    ends = _ends(pods)
    # MCAD calls a run complete whose Jobs have ended, whichever way, and may count failures that were made good.
    if word_of(live) == "Completed" and live["kind"] == "AppWrapper" and pods:
        end = "failed" if _ends(_newest(pods)) else "succeeded"
    if end == "failed":
        return Progress(title=title, state="failed", why="; ".join([_said(status, held) or word_of(live), *ends]))
    if end or {"Complete", "Completed", "Succeeded"} & set(held):
        return Progress(title=title, state="finished")
    if _is_ready(live, status, pods):
        return Progress(title=title, state="ready")
    if kueue.is_suspended(live) and (why := (waits or {}).get(live["metadata"].get("uid"))):
        return Progress(title=title, state="queued", why=why)
    nothing = _SUSPENDED if kueue.is_suspended(live) else "no pod yet"
    return Progress(title=title, state="waiting", why="; ".join(_holdups(pods)) or nothing)


def _said(status: Mapping[str, Any], held: Mapping[str, Object]) -> str:
    """Why a workload of another project failed, as far as it says."""
    state = status.get("state")
    said = state if isinstance(state, Mapping) else held.get("Unhealthy", {})
    return f"{said.get('reason', '')}: {said.get('message', '')}".strip(": ")


def _is_ready(live: Object, status: Mapping[str, Any], pods: Sequence[Object]) -> bool:
    spec = live["spec"]
    if live["kind"] == "Job" and "tasks" in spec:
        wanted = sum(int(task.get("replicas", 1)) for task in spec["tasks"])
        return int(status.get("running") or 0) + int(status.get("succeeded") or 0) >= wanted
    if live["kind"] == "DIJob":
        return status.get("phase") == "Running"
    if live["kind"] == "Job":
        return bool(
            int(status.get("ready") or 0) + int(status.get("succeeded") or 0) >= int(spec.get("parallelism", 1))
        )
    if live["kind"] == "StatefulSet":
        replicas = int(spec.get("replicas", 1))
        is_seen = status.get("observedGeneration", 0) >= live["metadata"].get("generation", 0)
        return bool(
            is_seen and status.get("readyReplicas", 0) >= replicas and status.get("updatedReplicas", 0) >= replicas
        )
    return bool(pods) and all(pod["status"].get("phase") == "Succeeded" or _has(pod, "Ready") for pod in pods)


def _pods_of(workload: Object, pods: Sequence[Object]) -> list[Object]:
    """The pods that `workload` made, as far as owners or labels tell; those of other kinds by their group."""
    name = workload["metadata"]["name"]
    owned = [pod for pod in pods if any(o["name"] == name for o in pod["metadata"].get("ownerReferences") or [])]
    if owned or workload["kind"] in ("Job", "StatefulSet"):
        return owned
    # Those of an AppWrapper are its Jobs', which bear the run that it is called after.
    run = (workload["metadata"].get("labels") or {}).get("symph.dev/run")
    return [pod for pod in pods if _is_of_run(pod, run) or name in str(pod["metadata"].get("ownerReferences"))]


def _is_of_run(pod: Object, run: str | None) -> bool:
    """Whether a Job of the run made the pod."""
    labels, owners = pod["metadata"].get("labels") or {}, pod["metadata"].get("ownerReferences") or []
    return run is not None and labels.get("symph.dev/run") == run and any(one["kind"] == "Job" for one in owners)


def _newest(pods: Sequence[Object]) -> list[Object]:
    """The last pod of each replica of a Job."""
    last: dict[tuple[str, str], Object] = {}
    for pod in sorted(pods, key=lambda item: str(item["metadata"].get("creationTimestamp", ""))):
        labels, notes = pod["metadata"].get("labels") or {}, pod["metadata"].get("annotations") or {}
        last[labels.get("symph.dev/group", ""), notes.get("batch.kubernetes.io/job-completion-index", "")] = pod
    return list(last.values())


def _ends(pods: Sequence[Object]) -> list[str]:
    """The containers that ended badly, each with its exit status."""
    found = []
    for pod in pods:
        for one in _containers(pod):
            ended = (one.get("state") or {}).get("terminated") or (one.get("lastState") or {}).get("terminated")
            if ended and ended.get("exitCode"):
                said = (ended.get("message") or "").strip().splitlines()
                reason = ended.get("reason") or "Error"
                found.append(
                    f"{one['name']} exited with {ended['exitCode']} ({reason}){': ' + said[-1] if said else ''}"
                )
    return list(dict.fromkeys(found))


def _holdups(pods: Sequence[Object]) -> list[str]:
    """Why pods do not run: the scheduler's reason, or the one of a container that waits."""
    found = []
    for pod in pods:
        for condition in pod["status"].get("conditions") or []:
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                found.append(f"{pod['metadata']['name']} pending: {condition.get('message', '')}")
        for one in _containers(pod):
            waiting = (one.get("state") or {}).get("waiting")
            if waiting and waiting.get("reason"):
                found.append(f"{one['name']} waits: {waiting['reason']} {waiting.get('message', '')}".rstrip())
            elif not one.get("ready") and "running" in (one.get("state") or {}):
                found.append(f"{one['name']} runs and is not ready")
    return list(dict.fromkeys(found))


def _containers(pod: Object) -> list[Object]:
    status = pod.get("status") or {}
    return [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]


def _has(pod: Object, condition: str) -> bool:
    return any(one["type"] == condition and one["status"] == "True" for one in pod["status"].get("conditions") or [])
