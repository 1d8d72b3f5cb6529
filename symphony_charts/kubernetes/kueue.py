"""`reasons_of` says why Kueue holds an experiment back and who is before it, by what its Workloads say. Pure.

Source: kueue.x-k8s.io `Workload`, its conditions and `spec.active`; the same in v1beta1 and v1beta2. The order of a
queue is that of kubernetes-sigs/kueue, pkg/cache/queue: the higher priority first, then who came earlier, where an
eviction that was nobody's fault begins the wait anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from symphony_charts.kinds.base import Object

__all__ = ["GROUP", "KINDS", "NO_QUEUE", "QUEUE", "QUEUES", "Queue", "is_suspended", "reasons_of", "wait_reason"]


GROUP = "kueue.x-k8s.io"
KINDS = ((f"{GROUP}/v1beta2", "Workload"), (f"{GROUP}/v1beta1", "Workload"))
QUEUES = ((f"{GROUP}/v1beta2", "LocalQueue"), (f"{GROUP}/v1beta1", "LocalQueue"))
QUEUE = f"{GROUP}/queue-name"
_ORDINALS = ("", "", "second", "third", "fourth", "fifth")
_MOST_NAMES = 3
_REQUEUED_LATER = ("PodsReadyTimeout", "AdmissionCheck")


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """The readable part of Kueue: its records, its LocalQueues, and which experiments own records, by the owner's uid.

    Each may be of those alone that may be read.
    """

    records: Sequence[Object] = ()
    locals: Sequence[Object] = ()
    experiments: Mapping[str, str] = field(default_factory=dict)

    def ahead_of(self, record: Object) -> list[str]:
        """Return who waits ahead in the same queue, in order: experiments, else the names of owners."""
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
    """Return True if it waits for somebody to let it start."""
    return bool(workload["spec"].get("suspend"))


def reasons_of(workloads: Iterable[Object], queue: Queue = NO_QUEUE) -> dict[str, str]:
    """Return why each suspended workload waits, by its uid: queue, experiments ahead, Kueue's message."""
    reasons, held = {}, set()
    for item in workloads:
        meta = item["metadata"]
        name = (meta.get("labels") or {}).get(QUEUE)
        if is_suspended(item):
            held.add(str(meta.get("uid", "")))
        if name and is_suspended(item):
            reasons[str(meta.get("uid", ""))] = f"in {name}: it has not admitted it"
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
    more = f" and {len(ahead) - _MOST_NAMES} more" if len(ahead) > _MOST_NAMES else ""
    return f", {ordinal} behind {', '.join(ahead[:_MOST_NAMES])}{more}"


def _is_waiting(record: Object) -> bool:
    conditions = _conditions_of_record(record)
    is_over = any(_is_true(conditions, kind) for kind in ("Finished", "Admitted", "QuotaReserved"))
    return not is_over and (record.get("spec") or {}).get("active") is not False


def _turn(record: Object) -> tuple[int, str, str]:
    evicted = _conditions_of_record(record).get("Evicted", {})
    since = str(record["metadata"].get("creationTimestamp", ""))
    if evicted.get("status") == "True" and evicted.get("reason") in _REQUEUED_LATER:
        since = str(evicted.get("lastTransitionTime") or since)
    return -int(record["spec"].get("priority") or 0), since, str(record["metadata"].get("uid", ""))


def _conditions_of_record(record: Object) -> dict[str, Object]:
    return {condition["type"]: condition for condition in (record.get("status") or {}).get("conditions") or []}


def wait_reason(record: Object) -> str:
    """Return queue and reason of a waiting Kueue Workload; empty once it is admitted or over."""
    spec, status = record.get("spec") or {}, record.get("status") or {}
    conditions = _conditions_of_record(record)
    if _is_true(conditions, "Finished") or _is_true(conditions, "Admitted"):
        return ""
    queue = str(spec.get("queueName") or "its queue")
    if spec.get("active") is False:
        return f"in {queue}: turned away: {_message(conditions, 'Evicted')}"
    if _is_true(conditions, "QuotaReserved"):
        pending = [
            admission_check["name"]
            for admission_check in status.get("admissionChecks") or []
            if admission_check.get("state") != "Ready"
        ]
        return f"in {queue}: it has room, and waits for {', '.join(pending) or 'its checks'}"
    return f"in {queue}: {_message(conditions, 'QuotaReserved')}"


def _is_true(conditions: Mapping[str, Object], kind: str) -> bool:
    return conditions.get(kind, {}).get("status") == "True"


def _message(conditions: Mapping[str, Object], kind: str) -> str:
    return str(conditions.get(kind, {}).get("message") or "not looked at yet").strip()
