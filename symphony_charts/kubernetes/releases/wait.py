"""Wait for a release: a finished Job is a success; a failed one ends the wait with its reason."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from symphony_charts.errors import CheckFailed, ToolFailed
from symphony_charts.kinds.base import ENDED, WAITING, Restartable, is_pod_ready, is_service, run_of
from symphony_charts.kinds.registry import KINDS, is_whole, kind_for, word_of, workload_kind
from symphony_charts.kubernetes import container_phase
from symphony_charts.kubernetes.client import Kind, Object, title_of
from symphony_charts.kubernetes.container_phase import end_of_job, reason_unscheduled, reason_waiting
from symphony_charts.kubernetes.experiments import PLAIN, KubeExperiments
from symphony_charts.kubernetes.status import replica_of

State = Literal["queued", "waiting", "ready", "finished", "failed"]

_SUSPENDED = "suspended until it is resumed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The progress of one workload; `why` explains a delay or failure; `is_endless`: it never ends by itself.

    `is_absent`: the cluster does not have it. `status` is the exit status of the first failed container.
    """

    title: str
    state: State
    why: str = ""
    is_endless: bool = False
    is_absent: bool = False
    status: int | None = None

    def is_done(self, *, finished: bool) -> bool:
        """Return True if it has finished, or is ready and never ends; without `finished`, also if it is ready."""
        return self.state == "finished" or (self.state == "ready" and (self.is_endless or not finished))


def wait_for(
    experiments: KubeExperiments,
    manifest: Sequence[Object],
    name: str,
    namespace: str,
    finished: bool,
    timeout_s: float,
) -> None:
    """Wait until every workload of `manifest` is ready or finished; with `finished`, Jobs must have finished.

    Raises CheckFailed as soon as one has failed, and ToolFailed with the unfinished workloads after `timeout_s`.
    """
    kinds = dict.fromkeys([*PLAIN, *_workload_kinds(manifest)])
    served = [kind for kind in kinds if experiments.api.serves(*kind)]
    with contextlib.closing(experiments.object_changes(name, timeout_s, served)) as changes:
        # A first look, even if there is no time to wait.
        for _ in itertools.chain([None], changes):
            workloads = progress_in(experiments, manifest, name)
            failed = [workload for workload in workloads if workload.state == "failed"]
            if failed:
                what = "; ".join(f"{workload.title} failed: {workload.why}" for workload in failed)
                raise CheckFailed(what, f"release {name}, namespace {namespace}", f"see its logs: symph logs {name}")
            missing = [workload for workload in workloads if not workload.is_done(finished=finished)]
            if not missing:
                return
    what = "; ".join(f"{workload.title}: {workload.why or workload.state}" for workload in missing)
    next_step = f"wait longer: --timeout, or see its state: symph ps {name}"
    raise ToolFailed(f"not ready after {timeout_s:g} s: {what}", namespace, next_step)


def run_in(manifest: Sequence[Object]) -> str:
    """Return the run of a release's workloads; empty if they outlive runs."""
    return next((run for item in manifest if workload_kind(item) and (run := run_of(item))), "")


def services_of_run(manifest: Sequence[Object]) -> tuple[str, ...]:
    """Return the groups of services that each run restarts."""
    restarted = [item for item in manifest if workload_kind(item) and run_of(item)]
    restarted = [item for item in restarted if not is_finite(item) or is_service(item)]
    return tuple(sorted(str(item["metadata"]["labels"]["symph.dev/group"]) for item in restarted))


def is_finite(item: Object) -> bool:
    """Return True if an object runs pods and ends by itself."""
    kind = workload_kind(item)
    return kind is not None and kind.is_finite


def progress_in(experiments: KubeExperiments, manifest: Sequence[Object], name: str) -> list[Progress]:
    kinds = dict.fromkeys([*_workload_kinds(manifest), *KINDS["jobs"].gvks])
    workloads = experiments.of_kinds(kinds, name)
    live = {(item["kind"], item["metadata"]["name"]): item for item in workloads}
    pods = experiments.pods(name)
    waits = container_phase.reasons_of(workloads, experiments.queue(workloads))
    return [
        progress_of(item, live.get((item["kind"], item["metadata"]["name"])), _pods_of(item, pods), waits, workloads)
        for item in manifest
        if workload_kind(item)
    ]


def _workload_kinds(manifest: Sequence[Object]) -> list[Kind]:
    pairs = ((item["apiVersion"], item["kind"]) for item in manifest if workload_kind(item))
    return list(dict.fromkeys(pairs))


def progress_of(
    wanted: Object,
    live: Object | None,
    pods: Sequence[Object],
    waits: Mapping[str, str] | None = None,
    workloads: Sequence[Object] = (),
) -> Progress:
    """Return the progress of the workload `wanted` (of the manifest), by its live object and its pods.

    `waits` gives the reason of waiting for suspended ones, by uid; `workloads` are all of the release, such as a Job
    that `wanted` made.
    """
    title = title_of(wanted)
    if live is None:
        return Progress(title=title, state="waiting", why="not created yet", is_absent=True)
    end, condition = end_of_job(live)
    kind = kind_for(wanted) or KINDS["jobs"]
    if end is None and kind.holds_groups:
        end = kind.outcome(live)
    by_age = sorted(pods, key=lambda pod: str(pod["metadata"].get("creationTimestamp", "")))
    newest = list({replica_of(pod): pod for pod in by_age}.values())
    # MCAD calls a run complete when its Jobs have ended in any way, and may count failures that a retry fixed.
    if kind.ends_either_way and word_of(live) == "Completed" and pods:
        end = "failed" if _bad_exits(newest) else "succeeded"
    if end is None and isinstance(kind, Restartable) and not kind.restarts(live):
        # Its controller may take minutes to report the failure.
        jobs = (item for item in workloads if kind_for(item) is KINDS["jobs"] and run_of(item) == run_of(live))
        for ended, held, job in ((*end_of_job(job), job) for job in jobs):
            if ended == "failed":
                end, condition = ended, {**held, "reason": f"Job/{job['metadata']['name']}"}
                break
    if end == "failed":
        why = _text_of(condition) or _text_of(_state_of(live)) or word_of(live)
        status = next((int(ended["exitCode"]) for _, _, ended in _bad_ends(pods)), None)
        return Progress(title=title, state="failed", why="; ".join([why, *_bad_exits(pods)]), status=status)
    if end == "succeeded" or ENDED in (live["metadata"].get("annotations") or {}):
        return Progress(title=title, state="finished")
    if kind.is_ready(live, newest):
        return Progress(title=title, state="ready", is_endless=not kind.is_finite or is_service(wanted))
    if container_phase.is_suspended(live):
        queued = (waits or {}).get(live["metadata"].get("uid"))
        return Progress(title=title, state="queued" if queued else "waiting", why=queued or _SUSPENDED)
    return Progress(title=title, state="waiting", why=_standing(pods, newest, kind.pods_at_a_time(live)))


def _standing(pods: Sequence[Object], newest: Sequence[Object], wanted: int) -> str:
    """Describe a workload that is not ready: the number of ready pods, and the obstacles of the others.

    `newest` are the pods that count, one per replica; at least `wanted` are expected.
    """
    if not newest:
        return "no pod yet"
    unready = {replica_of(pod) for pod in newest if not is_pod_ready(pod)}
    count = max(len(newest), wanted)
    counted = [f"{len(newest) - len(unready)} of {count} pods ready"] if count > 1 else []
    # The replacement of a failed pod does not show the reason yet.
    reasons = [*_pending_reasons(newest), *_bad_exits(pods, unready)]
    return "; ".join([*counted, *reasons]) or "its pod is not ready"


def _state_of(live: Object) -> Mapping[str, Any]:
    state = (live.get("status") or {}).get("state")
    return state if isinstance(state, dict) else container_phase.true_conditions(live).get("Unhealthy", {})


def _text_of(condition: Mapping[str, Any]) -> str:
    return f"{condition.get('reason', '')}: {condition.get('message', '')}".strip(": ")


def _pods_of(workload: Object, pods: Sequence[Object]) -> list[Object]:
    name, run = workload["metadata"]["name"], run_of(workload)
    owners = [(pod, pod["metadata"].get("ownerReferences") or []) for pod in pods]
    owned = [pod for pod, held in owners if any(owner["name"] == name for owner in held)]
    if owned or not is_whole(workload):
        return owned
    # The pods of an AppWrapper belong to its Jobs, which have the label of its run.
    return [
        pod
        for pod, held in owners
        if name in str(held) or (run and run_of(pod) == run and any(kind_for(owner) is KINDS["jobs"] for owner in held))
    ]


def _bad_exits(pods: Sequence[Object], of: Container[tuple[str, int]] | None = None) -> list[str]:
    exits = []
    groups = [group for group, _ in {replica_of(pod) for pod in pods}]
    for pod, container, ended in _bad_ends(pods):
        group, index = replica_of(pod)
        if of is not None and (group, index) not in of:
            continue
        name = f"{container['name']}-{index}" if groups.count(group) > 1 else container["name"]
        lines = (ended.get("message") or "").strip().splitlines()
        last = f": {lines[-1]}" if lines else ""
        exits.append(f"{name} exited with {ended['exitCode']} ({ended.get('reason') or 'Error'}){last}")
    return list(dict.fromkeys(exits))


def _bad_ends(pods: Sequence[Object]) -> Iterator[tuple[Object, Object, Object]]:
    """Yield the failed containers, each with its pod and its terminated state; sidecars only while their pod runs.

    The kubelet stops sidecars with their pod, mostly with a nonzero exit status.
    """
    for pod in pods:
        has_ended = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        steps = (pod.get("spec") or {}).get("initContainers") or []
        sidecars = [step["name"] for step in steps if step.get("restartPolicy") == "Always"]
        for container in _containers(pod):
            if has_ended and container["name"] in sidecars:
                continue
            states = (container.get(key) or {} for key in ("state", "lastState"))
            ended = next((state["terminated"] for state in states if state.get("terminated")), None)
            if ended and ended.get("exitCode"):
                yield pod, container, ended


def _pending_reasons(pods: Sequence[Object]) -> list[str]:
    reasons = []
    for pod in pods:
        if unscheduled := reason_unscheduled(pod):
            reasons.append(f"{pod['metadata']['name']} pending: {unscheduled}")
        for container in _containers(pod):
            state = container.get("state") or {}
            if waiting := reason_waiting(state):
                reasons.append(f"{container['name']} is waiting: {waiting}")
            elif not container.get("ready") and "running" in state:
                reasons.append(f"{container['name']} is running, but not ready")
    return list(dict.fromkeys(reasons))


def _containers(pod: Object) -> list[Object]:
    return [container for container in container_phase.container_statuses(pod) if container["name"] != WAITING]
