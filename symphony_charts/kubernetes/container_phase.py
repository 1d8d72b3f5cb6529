"""`phase_of_container` says in which phase a container, pod or Job on Kubernetes is, and why, in words. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from symphony_charts.backend.status import Phase
from symphony_charts.formats.age import age
from symphony_charts.kinds.base import STOPPED, Object

__all__ = [
    "end_of_job",
    "moment_of",
    "phase_of_container",
    "phase_of_failure",
    "phase_of_workload",
    "reason_unscheduled",
    "reason_waiting",
]


def phase_of_container(pod: Object, seen: Object, now: float) -> tuple[Phase, str, str]:
    """Phase, state in words and reason of a container."""
    state = seen.get("state") or {}
    if pod["metadata"].get("deletionTimestamp") and "terminated" not in state:
        return "stopping", "stopping", ""
    if "running" in state:
        return "running", f"running: {age(now - moment_of(state['running']['startedAt']))}", ""
    if "terminated" in state:
        return _phase_of_end(state["terminated"])
    reason = str((state.get("waiting") or {}).get("reason") or "")
    if reason in ("", "PodInitializing", "ContainerCreating"):
        return _phase_of_pod(pod, reason)
    text = reason_waiting(state)
    return "pending", f"waiting: {text}", text


def reason_waiting(state: Object) -> str:
    """Return the kubelet's reason why a container in `state` waits; empty unless it waits."""
    waiting = state.get("waiting") or {}
    reason = str(waiting.get("reason") or "")
    message = str(waiting.get("message") or "").strip().splitlines()
    return f"{reason} {message[0]}" if reason and message and message[0] != reason else reason


def _phase_of_end(ended: Object) -> tuple[Phase, str, str]:
    code = int(ended.get("exitCode") or 0)
    took = ""
    if ended.get("startedAt") and ended.get("finishedAt"):
        took = f" after {age(moment_of(ended['finishedAt']) - moment_of(ended['startedAt']))}"
    if code == 0:
        return "succeeded", f"succeeded{took}", ""
    reason = str(ended.get("reason") or "Error")
    lines = str(ended.get("message") or "").strip().splitlines()
    return "failed", f"failed {code}{took}: {reason}", f"exit status {code}: {lines[-1] if lines else reason}"


def phase_of_failure(pod: Object, kind: str, workload: Object | None, state: str) -> tuple[Phase, str]:
    """Phase and state of a container that failed: the last word is the workload's, which may start it again."""
    settled, _ = phase_of_workload(workload) if workload else ("failed", "")
    has_ended = settled == "succeeded" or (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    if kind == "sidecar" and has_ended:
        # It never ends a pod: its failures only restart it.
        return "stopped", f"stopped with its pod, {state}"
    is_tried_again = settled in ("pending", "queued") and not (workload and _has_one_try(pod, workload))
    return ("pending", f"{state}, restarting") if is_tried_again else ("failed", state)


def _has_one_try(pod: Object, workload: Object) -> bool:
    """Return True if neither the node nor the workload starts a container again; a policy may not count what failed."""
    spec = workload["spec"]
    is_left = (pod.get("spec") or {}).get("restartPolicy") == "Never"
    return is_left and spec.get("backoffLimit") == 0 and not spec.get("podFailurePolicy")


def _phase_of_pod(pod: Object, reason: str) -> tuple[Phase, str, str]:
    status = pod.get("status") or {}
    if status.get("phase") in ("Failed", "Succeeded"):
        text = str(status.get("message") or status.get("reason") or status["phase"])
        phase: Phase = "failed" if status["phase"] == "Failed" else "stopped"
        return phase, f"{phase}: {text}", text
    if text := reason_unscheduled(pod):
        return "pending", f"pending: {text}", text
    if (pod.get("spec") or {}).get("schedulingGroup") and not (pod.get("spec") or {}).get("nodeName"):
        # The scheduler says nothing of such a pod until as many are there as the gang needs.
        reason = "its gang is not complete"
    return "pending", f"pending: {reason}" if reason else "pending", reason


def reason_unscheduled(pod: Object) -> str:
    """Return why the scheduler finds no node for a pod; empty if it gives no reason."""
    for condition in (pod.get("status") or {}).get("conditions") or []:
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            # The first sentence names what is missing; the rest is about preemption.
            return str(condition.get("message") or condition.get("reason") or "").partition(". ")[0]
    return ""


def end_of_job(workload: Object) -> tuple[Literal["succeeded", "failed"] | None, Object]:
    """Return how a Job ended by its conditions, and that condition; None before its end."""
    held = _conditions(workload)
    for kind in ("Failed", "FailureTarget"):
        if kind in held:
            return "failed", held[kind]
    for kind in ("Complete", "SuccessCriteriaMet"):
        if kind in held:
            return "succeeded", held[kind]
    return None, {}


def _conditions(workload: Object) -> Mapping[str, Object]:
    conditions = (workload.get("status") or {}).get("conditions") or []
    return {condition["type"]: condition for condition in conditions if condition.get("status") == "True"}


def phase_of_workload(
    workload: Object, queue: Mapping[str, str] | None = None, index: int | None = None
) -> tuple[Phase, str]:
    """Phase and state of replicas that have no pod; `queue` says by uid why a suspended workload waits.

    Of one replica, by its `index`, the workload may know how it ended by itself.
    """
    status = workload.get("status") or {}
    if _holds(status.get("completedIndexes"), index):
        return "succeeded", "succeeded; its pod is gone"
    if _holds(status.get("failedIndexes"), index):
        return "failed", f"failed; its pod is gone{_stopped(workload)}"
    end, condition = end_of_job(workload)
    if end == "failed":
        return "failed", f"failed: {condition.get('message') or condition.get('reason')}"
    if end == "succeeded":
        return "succeeded", "succeeded; its pod is gone"
    if stopped := _conditions(workload).get(STOPPED):
        return "stopped", f"stopped: {stopped['message']}"
    if workload["spec"].get("suspend"):
        why = _why_queued(workload["metadata"], queue or {})
        return ("queued", f"queued {why}") if why else ("pending", "pending: suspended until somebody resumes it")
    return "pending", "pending: no pod yet"


def _holds(indexes: object, index: int | None) -> bool:
    """Return True if a list of indexes as a Job writes it (``0-2,5``) holds this one."""
    ranges = [part.partition("-") for part in str(indexes or "").split(",") if part]
    return index is not None and any(int(first) <= index <= int(last or first) for first, _, last in ranges)


def _stopped(workload: Object) -> str:
    stopped = _conditions(workload).get(STOPPED)
    return f": {stopped['message']}" if stopped else ""


def _why_queued(meta: Object, queue: Mapping[str, str]) -> str:
    uids = [meta.get("uid"), *(owner.get("uid") for owner in meta.get("ownerReferences") or [])]
    return next((queue[uid] for uid in uids if uid in queue), "")


def moment_of(text: str) -> float:
    """Seconds since 1970 of a time as Kubernetes writes it, with up to nine decimals."""
    whole, dot, fraction = text.removesuffix("Z").partition(".")
    return datetime.fromisoformat(f"{whole}+00:00").timestamp() + (float(f"0.{fraction}") if dot else 0.0)
