"""`reasons_of` says why Kueue holds an experiment back, by what its Workloads say of their Jobs. Pure.

Source: kueue.x-k8s.io `Workload`, its conditions and `spec.active`; the same in v1beta1 and v1beta2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["GROUP", "KINDS", "QUEUE", "is_suspended", "reasons_of", "wait_reason"]

Object = Mapping[str, Any]

GROUP = "kueue.x-k8s.io"
KINDS = ((f"{GROUP}/v1beta2", "Workload"), (f"{GROUP}/v1beta1", "Workload"))
QUEUE = f"{GROUP}/queue-name"


def is_suspended(workload: Object) -> bool:
    """Whether it waits for somebody to let it start."""
    return bool(workload["spec"].get("suspend"))


def reasons_of(workloads: Iterable[Object], admissions: Iterable[Object] = ()) -> dict[str, str]:
    """Why each suspended one of `workloads` waits, by its uid; `admissions` are Kueue's own records."""
    reasons = {}
    for item in workloads:
        meta = item["metadata"]
        queue = (meta.get("labels") or {}).get(QUEUE)
        if queue and is_suspended(item):
            reasons[str(meta.get("uid", ""))] = f"in {queue}: it has not admitted it"
    for record in admissions:
        reason = wait_reason(record)
        owners = (record["metadata"].get("ownerReferences") or []) if reason else []
        reasons |= {str(owner["uid"]): reason for owner in owners}
    return reasons


def wait_reason(record: Object) -> str:
    """What one of Kueue's Workloads says of its wait: queue and reason; empty once it is admitted or over."""
    spec, status = record.get("spec") or {}, record.get("status") or {}
    conditions = {condition["type"]: condition for condition in status.get("conditions") or []}
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
