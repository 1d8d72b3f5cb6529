"""Phases of containers and workloads, and Kueue's reasons for waiting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from symphony_charts.backend.status import Phase
from symphony_charts.formats.printable import age, several
from symphony_charts.kinds.base import ENDED, STOPPED, Object


def phase_of_container(pod: Object, seen: Object, now: float) -> tuple[Phase, str, str]:
    """Return phase, state in words and reason of a container."""
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
    """Return the kubelet's reason for waiting; empty unless the container waits."""
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
    """Return phase and state of a failed container: the workload decides, since it may start it again."""
    settled, _ = phase_of_workload(workload) if workload else ("failed", "")
    has_ended = settled == "succeeded" or (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    if kind == "sidecar" and has_ended:
        # A sidecar never ends a pod: its failures only restart it.
        return "stopped", f"stopped with its pod, {state}"
    spec = workload["spec"] if workload else {}
    # Neither the node nor the workload restarts it; a policy may ignore some failures.
    is_left = (pod.get("spec") or {}).get("restartPolicy") == "Never"
    has_one_try = is_left and spec.get("backoffLimit") == 0 and not spec.get("podFailurePolicy")
    is_tried_again = settled in ("pending", "queued") and not has_one_try
    return ("pending", f"{state}, restarting") if is_tried_again else ("failed", state)


def _phase_of_pod(pod: Object, reason: str) -> tuple[Phase, str, str]:
    status = pod.get("status") or {}
    if status.get("phase") in ("Failed", "Succeeded"):
        text = str(status.get("message") or status.get("reason") or status["phase"])
        phase: Phase = "failed" if status["phase"] == "Failed" else "stopped"
        return phase, f"{phase}: {text}", text
    if text := reason_unscheduled(pod):
        return "pending", f"pending: {text}", text
    if (pod.get("spec") or {}).get("schedulingGroup") and not (pod.get("spec") or {}).get("nodeName"):
        # The scheduler gives no reason until the gang has enough pods.
        reason = "its gang is incomplete"
    return "pending", f"pending: {reason}" if reason else "pending", reason


def reason_unscheduled(pod: Object) -> str:
    """Return why the scheduler finds no node for a pod; empty without a reason."""
    for condition in (pod.get("status") or {}).get("conditions") or []:
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            # The first sentence gives the missing resources; the rest is about preemption.
            return str(condition.get("message") or condition.get("reason") or "").partition(". ")[0]
    return ""


def container_statuses(pod: Object) -> list[dict[str, Any]]:
    """Return what the kubelet reports of the containers of a pod, init containers first."""
    status = pod.get("status") or {}
    return [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]


def end_of_job(workload: Object) -> tuple[Literal["succeeded", "failed"] | None, Object]:
    """Return the result of a Job by its conditions, and that condition; None before its end."""
    held = true_conditions(workload)
    for kind in ("Failed", "FailureTarget", "Complete", "SuccessCriteriaMet"):
        if kind in held:
            return "failed" if kind.startswith("Fail") else "succeeded", held[kind]
    return None, {}


def _conditions(item: Object) -> dict[str, Object]:
    return {condition.get("type", ""): condition for condition in (item.get("status") or {}).get("conditions") or []}


def true_conditions(item: Object) -> dict[str, Object]:
    """Return the conditions that hold, by type."""
    return {kind: condition for kind, condition in _conditions(item).items() if condition.get("status") == "True"}


def phase_of_workload(
    workload: Object, queue: Mapping[str, str] | None = None, index: int | None = None
) -> tuple[Phase, str]:
    """Return phase and state of replicas without a pod; `queue` gives by uid why a suspended workload waits.

    For one replica, by its `index`, the workload may record its result.
    """
    status, stopped = workload.get("status") or {}, true_conditions(workload).get(STOPPED)
    end, condition = end_of_job(workload)
    if _holds(status.get("completedIndexes"), index):
        return "succeeded", "succeeded; its pod is gone"
    if _holds(status.get("failedIndexes"), index):
        because = f": {stopped['message']}" if stopped else ""
        return "failed", f"failed; its pod is gone{because}"
    if end == "failed":
        return "failed", f"failed: {condition.get('message') or condition.get('reason')}"
    if end == "succeeded":
        return "succeeded", "succeeded; its pod is gone"
    if stopped:
        return "stopped", f"stopped: {stopped['message']}"
    if workload["spec"].get("suspend") and ENDED in (workload["metadata"].get("annotations") or {}):
        return "stopped", "stopped: it ended with the run"
    if workload["spec"].get("suspend"):
        meta, queued = workload["metadata"], queue or {}
        uids = [meta.get("uid"), *(owner.get("uid") for owner in meta.get("ownerReferences") or [])]
        why = next((queued[uid] for uid in uids if uid in queued), "")
        return ("queued", f"queued {why}") if why else ("pending", "pending: suspended until it is resumed")
    return "pending", "pending: no pod yet"


def _holds(indexes: object, index: int | None) -> bool:
    """Return True if a Job's list of indexes (``0-2,5``) contains this one."""
    ranges = [part.partition("-") for part in str(indexes or "").split(",") if part]
    return index is not None and any(int(first) <= index <= int(last or first) for first, _, last in ranges)


def moment_of(text: str) -> float:
    """Return seconds since 1970 of a Kubernetes time, with up to nine decimals."""
    whole, dot, fraction = text.removesuffix("Z").partition(".")
    return datetime.fromisoformat(f"{whole}+00:00").timestamp() + (float(f"0.{fraction}") if dot else 0.0)


# Source: kueue.x-k8s.io `Workload`, its conditions and `spec.active`; the same in v1beta1 and v1beta2. The queue order
# follows kubernetes-sigs/kueue, pkg/cache/queue: higher priority first, then earlier creation; after some evictions the
# eviction time counts instead.

GROUP = "kueue.x-k8s.io"
KINDS = ((f"{GROUP}/v1beta2", "Workload"), (f"{GROUP}/v1beta1", "Workload"))
QUEUES = ((f"{GROUP}/v1beta2", "LocalQueue"), (f"{GROUP}/v1beta1", "LocalQueue"))
QUEUE = f"{GROUP}/queue-name"
_ORDINALS = ("", "", "second", "third", "fourth", "fifth")
_REQUEUED_LATER = ("PodsReadyTimeout", "AdmissionCheck")


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """The readable part of Kueue: its records, its LocalQueues, and the experiments that own records, by owner uid.

    Each may be incomplete if permissions are missing.
    """

    records: Sequence[Object] = ()
    locals: Sequence[Object] = ()
    experiments: Mapping[str, str] = field(default_factory=dict)

    def ahead_of(self, record: Object) -> list[str]:
        """Return the experiments ahead in the same queue, in order; names of owners for others."""
        mine, own = self._queue_of(record), self._owner(record)
        waiting = [each for each in self.records if _is_waiting(each) and self._queue_of(each) == mine]
        before = [each for each in sorted(waiting, key=_turn) if _turn(each) < _turn(record)]
        return [owner for owner in dict.fromkeys(map(self._owner, before)) if owner != own]

    def _queue_of(self, record: Object) -> tuple[str, ...]:
        place = str(record["metadata"].get("namespace", "")), str(record["spec"].get("queueName", ""))
        for item in self.locals:
            if (item["metadata"].get("namespace", ""), item["metadata"]["name"]) == place:
                return (str(item["spec"].get("clusterQueue", "")),)
        return place

    def _owner(self, record: Object) -> str:
        meta = record["metadata"]
        owners = meta.get("ownerReferences") or [{"uid": "", "name": meta.get("name", "")}]
        space = f"{meta['namespace']}/" if meta.get("namespace") else ""
        return self.experiments.get(str(owners[0]["uid"])) or f"{space}{owners[0]['name']}"


NO_QUEUE = Queue()


def is_suspended(workload: Object) -> bool:
    """Return True if the workload waits for admission."""
    return bool(workload["spec"].get("suspend"))


def reasons_of(workloads: Iterable[Object], queue: Queue = NO_QUEUE) -> dict[str, str]:
    """Return why each suspended workload waits, by uid: queue, experiments ahead, Kueue's message."""
    reasons, held = {}, set()
    for meta in (item["metadata"] for item in workloads if is_suspended(item)):
        held.add(str(meta.get("uid", "")))
        if name := (meta.get("labels") or {}).get(QUEUE):
            reasons[str(meta.get("uid", ""))] = f"in {name}: not admitted yet"
    for record in queue.records:
        owners = [owner for owner in record["metadata"].get("ownerReferences") or [] if str(owner["uid"]) in held]
        where, colon, why = wait_reason(record).partition(": ") if owners else ("", "", "")
        if where and _is_waiting(record):
            where += _place(queue.ahead_of(record))
        reasons |= {str(owner["uid"]): f"{where}{colon}{why}" for owner in owners if where}
    return reasons


def _place(ahead: Sequence[str]) -> str:
    if not ahead:
        return ""
    number = len(ahead) + 1
    ordinal = _ORDINALS[number] if number < len(_ORDINALS) else f"number {number}"
    return f", {ordinal} behind {several(ahead)}"


def _is_waiting(record: Object) -> bool:
    is_over = not {"Finished", "Admitted", "QuotaReserved"}.isdisjoint(true_conditions(record))
    return not is_over and (record.get("spec") or {}).get("active") is not False


def _turn(record: Object) -> tuple[int, str, str]:
    evicted = true_conditions(record).get("Evicted", {})
    since = str(record["metadata"].get("creationTimestamp", ""))
    if evicted.get("reason") in _REQUEUED_LATER:
        since = str(evicted.get("lastTransitionTime") or since)
    return -int(record["spec"].get("priority") or 0), since, str(record["metadata"].get("uid", ""))


def wait_reason(record: Object) -> str:
    """Return queue and reason of a waiting Kueue Workload; empty if it is admitted or finished."""
    spec, status, held = record.get("spec") or {}, record.get("status") or {}, true_conditions(record)
    if "Finished" in held or "Admitted" in held:
        return ""
    queue = str(spec.get("queueName") or "its queue")
    if "QuotaReserved" in held and spec.get("active") is not False:
        checks = status.get("admissionChecks") or []
        pending = [check["name"] for check in checks if check.get("state") != "Ready"]
        return f"in {queue}: quota reserved, waiting for {', '.join(pending) or 'its checks'}"
    kind, words = ("Evicted", "turned away: ") if spec.get("active") is False else ("QuotaReserved", "")
    message = str(_conditions(record).get(kind, {}).get("message") or "not considered yet")
    return f"in {queue}: {words}{message.strip()}"
